package tour

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"fabsh/fabric/format"
)

// state is the content of the file.
type state struct {
	Schema string `json:"schema"`
	Step   int    `json:"step"` // from 1; one more than there are steps: the tour is complete
}

const schema = "fabsh.tour/1"

// maxState is longer than any state, in bytes.
const maxState = 4 << 10

// load returns the step, from 0, in the file at path; 0 without a file.
func load(path string) (int, error) {
	if path == "" {
		return 0, nil
	}
	f, err := format.OpenRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxState))
	if err != nil {
		return 0, err
	}
	var s state
	if err := json.Unmarshal(data, &s); err != nil || s.Schema != schema || s.Step < 1 || s.Step > len(steps)+1 {
		return 0, fmt.Errorf("%s: cannot be read", path)
	}
	return s.Step - 1, nil
}

// save keeps the step in the file at path.
func save(path string, at int) error {
	if path == "" {
		return errors.New("there is no home directory")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	write := func(w io.Writer) error { return json.NewEncoder(w).Encode(state{schema, at + 1}) }
	return format.WriteOwn(path, write)
}
