package records

import (
	"strings"
	"testing"

	"fabsh/mad"
)

// TestHelpVariants: the help of an attribute has all its variants, also of
// classes that share it.
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
		"\nVariant bad_b_key of .data_details in class BM, if is_generic is 1 and trap_number is 259\n",
		"\nVariant port_service of .data_details in class SubnAdm version 1, if is_generic is 1 and trap_number is 64 to 65\n",
	} {
		if !strings.Contains(notice, want) {
			t.Errorf("help of Notice: no %q", want)
		}
	}
}

// TestHelpGeneralInfo: which devices' answers end how.
func TestHelpGeneralInfo(t *testing.T) {
	text := AttributesHelp(AttributesNamed("GeneralInfo"))
	for _, want := range []string{
		"\nVariant is3 of .software, if device_id is 0x0190 or 0x5a44 to 0x5a46 or ",
		"\nVariant is4 of .software, if device_id is any other\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestHelpRequired: what class version 1 asks of a subnet administrator.
func TestHelpRequired(t *testing.T) {
	for name, want := range map[string]string{
		"NodeRecord":      "A subnet administrator of class version 1 must support it.\n",
		"LinkRecord":      "Optional for a subnet administrator of class version 1: its ClassPortInfo.capability_mask has is_subnet_optional_records_supported if it supports it.\n",
		"MCMemberRecord":  "Optional for a subnet administrator of class version 1: its ClassPortInfo.capability_mask has is_ud_multicast_supported if it supports it.\n",
		"CableInfoRecord": "",
	} {
		text := AttributesHelp(AttributesNamed(name))
		if has := strings.Contains(text, "of class version 1"); has != (want != "") || !strings.Contains(text, want) {
			t.Errorf("%s: no %q in\n%s", name, want, text)
		}
	}
	info, _ := mad.ClassSubnAdm.Info()
	for _, want := range []string{"GetBulk", "(optional)", "0x12 GetTable       reads all records that match; the response is of one or more MADs (required)"} {
		if !strings.Contains(ClassHelp(info), want) {
			t.Errorf("help of SubnAdm: no %q", want)
		}
	}
}
