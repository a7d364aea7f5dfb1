package search

// TurnGraph is for the tests outside of the package.
var TurnGraph = turnGraph
