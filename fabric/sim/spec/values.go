package spec

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"fabsh/fabric"
)

// values are the values of a spec's keys, given or default, and the first error.
type values struct {
	text map[string]string
	err  error
}

// parseValues reads text, whose keys are the common ones and those of the groups.
func parseValues(text string, groups ...[]Key) (*values, error) {
	v := &values{text: map[string]string{}}
	groups = append(groups, commonKeys)
	for _, k := range slices.Concat(groups...) {
		v.text[k.Name] = k.Default
	}
	if text == "" {
		return v, nil
	}
	given := map[string]bool{}
	for pair := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(pair, "=")
		_, known := v.text[key]
		switch {
		case !known:
			return nil, unknown("key", key, sortedNames(groups))
		case !ok:
			return nil, fmt.Errorf("key %q has no value: write %s=%s", key, key, v.text[key])
		case given[key]:
			return nil, fmt.Errorf("key %q is given twice", key)
		}
		given[key] = true
		v.text[key] = value
	}
	return v, nil
}

// sortedNames are the names of keys, sorted within each group.
func sortedNames(groups [][]Key) (names []string) {
	for _, keys := range groups {
		first := len(names)
		for _, k := range keys {
			names = append(names, k.Name)
		}
		slices.Sort(names[first:])
	}
	return names
}

// unknown is the error of an unknown name, with the valid ones.
func unknown(what, name string, valid []string) error {
	return fmt.Errorf("unknown %s %q%s; there are %s", what, name, fabric.DidYouMean(name, valid), strings.Join(valid, ", "))
}

func (v *values) fail(key, why string) {
	if v.err == nil {
		text := v.text[key]
		if quoted := strconv.Quote(text); strings.Contains(quoted, `\`) { // it may contain terminal escapes
			text = quoted
		}
		v.err = fmt.Errorf("%s=%s %s", key, text, why)
	}
}

func (v *values) number(key string, low, high int) int {
	n, err := strconv.Atoi(v.text[key])
	if err != nil || n < low || n > high {
		v.fail(key, fmt.Sprintf("is not a number from %d to %d", low, high))
		return low
	}
	return n
}

func (v *values) numbers(key string) (list []int) {
	for text := range strings.SplitSeq(v.text[key], "/") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxLIDs {
			v.fail(key, "is not a list of numbers with slashes between them, as in 18/18/36")
			n = 1
		}
		list = append(list, n)
	}
	return list
}

// word returns the index of the value among words.
func (v *values) word(key string, words ...string) int {
	i := slices.Index(words, v.text[key])
	if i < 0 {
		v.fail(key, "is not one of "+strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ", "))
		return 0
	}
	return i
}

func (v *values) yes(key string) bool { return v.word(key, "no", "yes") == 1 }

func (v *values) seed() int64 {
	n, err := strconv.ParseInt(v.text["seed"], 0, 64)
	if err != nil {
		v.fail("seed", "is not a number")
	}
	return n
}

func (v *values) share(key string) float64 {
	p, ok := parseShare(v.text[key])
	if !ok {
		v.fail(key, "is not a probability, as 0.05 or 5%")
	}
	return p
}

func parseShare(text string) (float64, bool) {
	number, percent := strings.CutSuffix(text, "%")
	p, err := strconv.ParseFloat(number, 64)
	if percent {
		p /= 100
	}
	return p, err == nil && p >= 0 && p <= 1
}

func (v *values) duration(key string) time.Duration {
	d, err := time.ParseDuration(v.text[key])
	if err != nil || d < 0 {
		v.fail(key, "is not a duration, as 20ms")
		return 0
	}
	return d
}

// countOrShare reads a number, or a share of all in per cent.
func (v *values) countOrShare(key, what string, all int) int {
	n, err := strconv.Atoi(v.text[key])
	if share, ok := parseShare(v.text[key]); ok && strings.HasSuffix(v.text[key], "%") {
		n, err = int(math.Ceil(share*float64(all))), nil
	}
	if err != nil || n < 0 || n > all {
		v.fail(key, fmt.Sprintf("is not a number or a share of %s, of which there are %d", what, all))
		return 0
	}
	return n
}

// finish returns f without the parts to remove, and the options.
func (v *values) finish(f *fabric.Fabric) (*fabric.Fabric, SubnetOptions, error) {
	f = v.remove(f)
	if v.err != nil {
		return nil, SubnetOptions{}, v.err
	}
	o, err := v.options(f)
	return f, o, err
}
