package records

import (
	"strings"
	"testing"

	"fabsh/mad"
)

// TestHelpVariants: the help of an attribute has all its variants, those of
// classes that share it too.
func TestHelpVariants(t *testing.T) {
	for _, a := range mad.Attributes() {
		text := AttributesHelp(AttributesNamed(a.Name))
		for _, v := range a.Variants {
			if !strings.Contains(text, "\n"+v.Layout.Doc+"\n") {
				t.Errorf("help of %s: nothing of variant %s of class %v version %d", a.Name, v.Name, a.Class, a.Version)
			}
		}
	}
	notice := AttributesHelp(AttributesNamed("Notice"))
	for _, want := range []string{
		"\nVariant bad_b_key of .data_details in class BM, where is_generic is 1 and trap_number is 259\n",
		"\nVariant port_service of .data_details in class SubnAdm version 1, where is_generic is 1 and trap_number is 64 to 65\n",
	} {
		if !strings.Contains(notice, want) {
			t.Errorf("help of Notice: no %q", want)
		}
	}
}
