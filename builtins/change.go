package builtins

// Why changes are refused.
const (
	refusedReadOnly = "this would change the fabric, which takes --write"
	refusedLoading  = "a module that is being loaded cannot change the fabric; do it in a function that the script calls"
)

// refuse is the refusal to change the fabric. It is remembered, for the exit
// status tells of it whatever becomes of the script.
func (c *call) refuse(reason string) error {
	c.session().refused = true
	return &RefusalError{Reason: c.Name + ": " + reason}
}
