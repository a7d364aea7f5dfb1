package apply

// Staged is how OpenSM, with its engine file, is given the tables of each round: it
// writes them, not fabsh.
type Staged struct {
	// File is what OpenSM reads, and Reload the process that reads it again: its
	// ID, or a file that holds it.
	File   string `json:"file"`
	Reload string `json:"reload"`
	// Before is the file as it was, compressed.
	Before []byte `json:"before"`
}
