package fabric

import (
	"regexp"
	"strings"
	"sync"
)

// Unidentified returns why a name identifies no node, in words: it is a placeholder, which many nodes
// have; "" if it is not. An empty name is not a placeholder.
func Unidentified(name string) string {
	word, rest, _ := strings.Cut(name, " ")
	switch w := strings.ToLower(word); {
	case w == "localhost", strings.HasPrefix(w, "localhost."), w == "localhost4", w == "localhost6", w == "(none)",
		w == "linux" && rest != "", w == "node":
		return "the host had no name of its own when the description was set"
	case rest == "" && adapterAlone().MatchString(word):
		return "the description has the name of an adapter, and no host"
	case strings.HasPrefix(name, "MF0;switch:"):
		return "the switch has the host name of its delivery"
	}
	model := name
	if i := strings.IndexAny(name, "#;:"); i >= 0 {
		model = name[:i] // a name of one's own follows
	}
	switch {
	case strings.HasPrefix(word, "MT") && len(word) > 2 && strings.Trim(word[2:], "0123456789") == "",
		strings.HasPrefix(name, "ConnectX"), strings.Contains(model, "Mellanox Technologies"), strings.Contains(model, "NVIDIA Technologies"):
		return "the description is the model, as the firmware sets it"
	case len(model) == len(name) && vendors().MatchString(name) && !places().MatchString(name):
		return "the description has vendor and model only"
	}
	return ""
}

// adapterAlone matches adapters as drivers and rdma-ndd name them: "node-7 mlx5_0" without a host.
var adapterAlone = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(HCA-|mlx[45]_|hfi1_|qib|mthca)[0-9]+$`)
})

// vendors matches descriptions of switches that begin or end with the vendor.
var vendors = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(Voltaire|Topspin|SilverStorm|QLogic|InfiniCon)\b`)
})

// places matches what identifies a node besides vendor and model: a GUID, or a chassis, slot or board
// with its number, such as "QLogic 12800-180 GUID=0x00066a00e30030ea L116".
var places = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(0x)?[0-9a-f]{12,16}\b|\b(chassis|slot|leaf|spine|line|board|chip)[ #=-]*[0-9]+|\b[LS][0-9]{2,3}[AB]?\b`)
})
