package spec

import (
	"fmt"
	"slices"
	"strings"

	"fabsh/fabric"
	"fabsh/fabric/adaptive"
	"fabsh/fabric/sim/state"
)

// adaptiveOption is a word of ar_with.
type adaptiveOption struct {
	word, doc string
	set       func(*state.AdaptiveSettings)
}

var adaptiveOptions = []adaptiveOption{
	{"free", "a choice for each packet, not each flow", func(s *state.AdaptiveSettings) { s.State = adaptive.Free }},
	{"all", "UD and UC too, not only RC and DC", func(s *state.AdaptiveSettings) { s.AllTransports = true }},
	{"secondary", "a second sub-group, of ports up by which routes are longer", func(s *state.AdaptiveSettings) { s.Secondary = true }},
	{"hbf", "a choice by hashes for packets that are not routed adaptively", func(s *state.AdaptiveSettings) { s.HBF = true }},
	{"whbf", "hashes that favour the first sub-group", func(s *state.AdaptiveSettings) { s.HBF, s.WHBF = true, true }},
	{"plft", "a private LFT for packets from other switches", func(s *state.AdaptiveSettings) { s.Private = true }},
	{"rn", "routing notifications by strings", func(s *state.AdaptiveSettings) { s.Notification = true }},
	{"pfrn", "routing notifications by packets", func(s *state.AdaptiveSettings) { s.PFRN = true }},
}

// adaptive reads the keys of adaptive routing.
func (v *values) adaptive(f *fabric.Fabric, o *SubnetOptions) {
	engine, with, faults := v.text["ar"], v.text["ar_with"], v.text["ar_faults"]
	switch {
	case engine != "no":
	case with == "" && faults == "":
		return
	default:
		engine = state.LFTEngines[0]
	}
	var err error
	key := "ar_with"
	if !slices.Contains(state.LFTEngines, engine) {
		key = "ar"
	}
	if o.Adaptive, err = ParseAdaptive(engine, with); err != nil {
		v.fail(key, "is invalid: "+err.Error())
		return
	}
	if faults == "" {
		return
	}
	for one := range strings.SplitSeq(faults, "+") {
		word, name, _ := strings.Cut(one, "@")
		n, err := findNode(f, name)
		var fault state.AdaptiveFault
		if err == nil {
			fault, err = state.AdaptiveFaultNamed(word)
		}
		if err == nil && !(n.IsSwitch() && hasCables(n)) {
			err = fmt.Errorf("%s is not a switch with cables", n.Label())
		}
		if err != nil {
			v.fail("ar_faults", "is invalid: "+err.Error()+"; write FAULT@SWITCH")
			return
		}
		o.AdaptiveFaults = append(o.AdaptiveFaults, adaptiveFault{fault, n})
	}
}

// ParseAdaptive returns the settings of a routing engine with options, several with +.
func ParseAdaptive(engine, with string) (*state.AdaptiveSettings, error) {
	if !slices.Contains(state.LFTEngines, engine) {
		return nil, fmt.Errorf("unknown engine %q; supported: %s", engine, strings.Join(state.LFTEngines, ", "))
	}
	set := &state.AdaptiveSettings{AdaptiveOptions: state.AdaptiveOptions{Engine: engine}}
	if with == "" {
		return set, nil
	}
	for word := range strings.SplitSeq(with, "+") {
		i := slices.IndexFunc(adaptiveOptions, func(o adaptiveOption) bool { return o.word == word })
		if i < 0 {
			var words []string
			for _, o := range adaptiveOptions {
				words = append(words, o.word)
			}
			return nil, fmt.Errorf("unknown option %q%s; supported: %s", word, fabric.DidYouMean(word, words), strings.Join(words, ", "))
		}
		adaptiveOptions[i].set(set)
	}
	return set, nil
}

// AdaptiveOptionsDoc is one line on all options of ParseAdaptive.
func AdaptiveOptionsDoc() string {
	var list []string
	for _, o := range adaptiveOptions {
		list = append(list, o.word+" ("+o.doc+")")
	}
	return strings.Join(list, ", ")
}

// hasCables reports whether n has two cables.
func hasCables(n *fabric.Node) bool {
	count := 0
	for p := range n.Ports() {
		if p.Peer() != nil {
			count++
		}
	}
	return count > 1
}
