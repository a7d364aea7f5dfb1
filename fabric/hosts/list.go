package hosts

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fabsh/fabric"
)

// Slurm's bounds: MAX_RANGE of src/common/hostlist.c is 64k names in one range, and
// names that end in more than 18 digits are not numbers to it.
const (
	maxRange  = 64 << 10
	maxDigits = 18
)

// maxNames is how many names a list may stand for: the LIDs of a subnet are 48k.
const maxNames = 1 << 20

// errLongName prevents that a few thousand bytes stand for gigabytes.
var errLongName = fmt.Errorf("host list: a name of more than %d bytes", fabric.MaxHostName)

// Fold writes names as Slurm does: "login,node[01-18,20]". Numbers are folded at the
// end of a name, where all programs know them; the order is natural, and names that
// are there twice are once.
func Fold(names []string) string {
	names = slices.Clone(names)
	slices.SortFunc(names, fabric.CompareNames)
	names = slices.Compact(names)
	type family struct {
		prefix string
		width  int // of numbers with leading zeros; 0: they have none
	}
	padded := map[family]bool{}
	for _, name := range names {
		if prefix, digits := split(name); len(digits) > 1 && digits[0] == '0' {
			padded[family{prefix, len(digits)}] = true
		}
	}
	var order []family
	numbers := map[family][]uint64{}
	for _, name := range names {
		prefix, digits := split(name)
		f := family{prefix, len(digits)}
		switch {
		case digits == "":
			f = family{name, -1}
		case !padded[f]:
			f.width = 0
		}
		if numbers[f] == nil {
			order = append(order, f)
		}
		n, _ := strconv.ParseUint(digits, 10, 64)
		numbers[f] = append(numbers[f], n)
	}
	parts := make([]string, len(order))
	for i, f := range order {
		parts[i] = f.prefix
		if f.width >= 0 {
			parts[i] += ranges(numbers[f], f.width)
		}
	}
	return strings.Join(parts, ",")
}

// split cuts a name before the number at its end; digits is "" without a number
// that can be folded.
func split(name string) (prefix, digits string) {
	i := len(name)
	for i > 0 && '0' <= name[i-1] && name[i-1] <= '9' {
		i--
	}
	if len(name)-i > maxDigits || strings.ContainsAny(name, "[],") {
		return name, ""
	}
	return name[:i], name[i:]
}

// ranges are numbers, which are sorted, as Slurm writes them behind a prefix.
func ranges(list []uint64, width int) string {
	if len(list) == 1 {
		return fmt.Sprintf("%0*d", width, list[0])
	}
	var b strings.Builder
	for i := 0; i < len(list); {
		last := i
		for last+1 < len(list) && list[last+1] == list[last]+1 && last+1-i < maxRange {
			last++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%0*d", width, list[i])
		if last > i {
			fmt.Fprintf(&b, "-%0*d", width, list[last])
		}
		i = last + 1
	}
	return "[" + b.String() + "]"
}

// Expand are the names that a list in Slurm's notation stands for, in its order. A name
// may have ranges in several places, as in rack[1-2]node[01-18]. Spaces around commas are ignored.
func Expand(list string) ([]string, error) {
	var names []string
	for len(list) > 0 {
		item, rest, err := cutItem(list)
		if err != nil {
			return nil, err
		}
		list = rest
		if names, err = expandItem(names, strings.TrimSpace(item)); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// cutItem cuts a list behind its first item: at a comma outside of brackets.
func cutItem(list string) (item, rest string, err error) {
	inside := false
	for i := range len(list) {
		switch c := list[i]; {
		case c == '[' && inside, c == ']' && !inside:
			return "", "", fmt.Errorf("host list %.60q: brackets are not closed, or not open", list)
		case c == '[' || c == ']':
			inside = !inside
		case c == ',' && !inside:
			return list[:i], list[i+1:], nil
		}
	}
	if inside {
		return "", "", fmt.Errorf("host list %.60q: a bracket is not closed", list)
	}
	return list, "", nil
}

// expandItem appends the names of one item.
func expandItem(names []string, item string) ([]string, error) {
	if item == "" {
		return nil, fmt.Errorf("host list: a name is empty")
	}
	begun := []string{""}
	for item != "" {
		prefix, rest, found := strings.Cut(item, "[")
		for i := range begun {
			if begun[i] += prefix; len(begun[i]) > fabric.MaxHostName {
				return nil, errLongName
			}
		}
		if !found {
			break
		}
		inner, after, _ := strings.Cut(rest, "]")
		item = after
		numbers, err := expandRanges(inner)
		if err != nil {
			return nil, err
		}
		if len(names)+len(begun)*len(numbers) > maxNames {
			return nil, fmt.Errorf("host list %.60q: more than %d names", "["+inner+"]", maxNames)
		}
		next := make([]string, 0, len(begun)*len(numbers))
		for _, b := range begun {
			for _, n := range numbers {
				next = append(next, b+n)
			}
		}
		begun = next
	}
	if len(names)+len(begun) > maxNames {
		return nil, fmt.Errorf("host list: more than %d names", maxNames)
	}
	return append(names, begun...), nil
}

// expandRanges are the numbers of what is between brackets, as written.
func expandRanges(inner string) ([]string, error) {
	var out []string
	for part := range strings.SplitSeq(inner, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			to = from
		}
		if max(len(from), len(to)) > fabric.MaxHostName {
			return nil, errLongName
		}
		lo, errLo := strconv.ParseUint(from, 10, 63)
		hi, errHi := strconv.ParseUint(to, 10, 63)
		if errLo != nil || errHi != nil || hi < lo {
			return nil, fmt.Errorf("host list: invalid list of numbers and ranges [%.60s]; example: [1-18,20]", inner)
		}
		if hi-lo >= maxRange || len(out) > maxNames {
			return nil, fmt.Errorf("host list: [%.60s] has more than %d names", inner, maxRange)
		}
		for n := lo; n <= hi; n++ {
			out = append(out, fmt.Sprintf("%0*d", len(from), n))
		}
	}
	return out, nil
}
