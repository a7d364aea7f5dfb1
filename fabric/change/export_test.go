package change

import "fabsh/fabric/jsonfile"

// PlanMembers returns the members of a plan's file.
func PlanMembers() []jsonfile.Member { return planFormat().Members() }
