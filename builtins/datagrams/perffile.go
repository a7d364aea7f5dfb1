package datagrams

import (
	"fmt"
	"slices"

	"fabsh/builtins/lang"
	"fabsh/builtins/topology"
	"fabsh/fabric"
	"fabsh/mad"
	"fabsh/mad/engine"
)

// inFile: the session reads a file that has some answers with the attribute.
func inFile(c *lang.Call, attr *mad.Attribute) bool {
	env := topology.EnvOf(c.Runtime())
	return env.Engine == nil && env.Loaded != nil && slices.ContainsFunc(env.Loaded.Answers(), func(a fabric.Answer) bool { return a.Class == attr.Class && a.ID == attr.ID })
}

// read finds the answers of all targets in the file; nil: there is none.
func (p *perfTargets) read(modifier uint32) []engine.Call {
	if !p.file {
		return nil
	}
	calls := make([]engine.Call, len(p.targets))
	for i := range calls {
		if data := p.answerIn(i, modifier); data != nil {
			calls[i].PutPerf(mad.MethodGetResp, p.attr.ID, modifier, data)
		} else {
			calls[i].Err = fmt.Errorf("%w: it has no %s of port %d there", topology.ErrNotInFile, p.attr.Name, p.ports[i])
		}
	}
	return calls
}

// answerIn is what target i has answered; nil: the file does not tell.
func (p *perfTargets) answerIn(i int, modifier uint32) []byte {
	n := p.targets[i].Node
	if n == nil {
		return nil
	}
	for _, a := range n.Fabric().AnswersOf(n.ID()) {
		if a.Class == p.attr.Class && a.ID == p.attr.ID && int(a.Port) == p.ports[i] && a.Modifier == modifier {
			return a.Data
		}
	}
	return nil
}
