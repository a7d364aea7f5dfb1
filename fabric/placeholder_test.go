package fabric_test

import (
	"testing"

	"fabsh/fabric"
)

// TestUnidentified: placeholders have the cause; what holds a place, a GUID or a name identifies a node.
func TestUnidentified(t *testing.T) {
	for name, want := range map[string]string{
		"localhost mlx5_0":            "the host had no name of its own when the description was set",
		"localhost":                   "the host had no name of its own when the description was set",
		"LOCALHOST.localdomain HCA-1": "the host had no name of its own when the description was set",
		"localhost4":                  "the host had no name of its own when the description was set",
		"(none) mlx5_0":               "the host had no name of its own when the description was set",
		"node HCA-1":                  "the host had no name of its own when the description was set",
		"linux HCA-1":                 "the host had no name of its own when the description was set",
		"mlx5_0":                      "the description has the name of an adapter, and no host",
		"HCA-12":                      "the description has the name of an adapter, and no host",
		"MT4123 ConnectX6   Mellanox Technologies": "the description is the model, as the firmware sets it",
		"MT4129":                        "the description is the model, as the firmware sets it",
		"ConnectX-7":                    "the description is the model, as the firmware sets it",
		"Quantum Mellanox Technologies": "the description is the model, as the firmware sets it",
		"MF0;switch:MQM8700/U1":         "the switch has the host name of its delivery",
		"ISR9024D Voltaire":             "the description has vendor and model only",
		"QLogic 12800-180":              "the description has vendor and model only",
		"QLogic 12800-180 GUID=0x00066a00e30030ea L116":           "",
		"SilverStorm 9024 GUID=0x00066a00da000275 Leaf 4, Chip A": "",
		"ISR2012 Voltaire sLB-24 line 3 chip 1":                   "",
		"Voltaire 4036 # ib-sw1":                                  "",
		"MF0;ib-sw1:MQM8700/U1":                                   "",
		"node-1 HCA-1":                                            "",
		"localhostess":                                            "",
		"nodes":                                                   "",
		"MTL01 mlx5_0":                                            "",
		"qib":                                                     "",
		"":                                                        "",
	} {
		if got := fabric.Unidentified(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
