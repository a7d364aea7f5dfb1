package verify

// For the tests outside of the package.
var (
	CheckVia            = checkVia
	MeasureDisjointness = measureDisjointness
)
