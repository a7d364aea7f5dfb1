package command

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"fabsh/shell/session"
)

// hostWith is /sys of a host with these ports: "mlx5_0/1 InfiniBand 4:_ACTIVE 100_Gb/sec_(4X_EDR)".
func hostWith(ports ...string) fs.FS {
	files := fstest.MapFS{}
	write := func(name, content string) {
		files[path.Join("sys/class", name)] = &fstest.MapFile{Data: []byte(content + "\n"), Mode: 0o444}
	}
	write("infiniband_mad/abi_version", "5")
	for i, p := range ports {
		words := strings.Fields(p)
		device, num, _ := strings.Cut(words[0], "/")
		folder := "infiniband/" + device + "/ports/" + num + "/"
		for name, content := range map[string]string{
			"link_layer": words[1], "state": words[2], "phys_state": "5: LinkUp", "cap_mask": "0x2651e848", "rate": words[3],
			"lid": fmt.Sprintf("%#x", 16+i), "lid_mask_count": "0", "sm_lid": "0x1", "sm_sl": "0", "pkeys/0": "0xffff",
			"gids/0": fmt.Sprintf("fe80:0000:0000:0000:0002:c903:0000:%04x", i),
		} {
			write(folder+name, strings.ReplaceAll(content, "_", " "))
		}
		write("infiniband/"+device+"/node_guid", "0002:c903:0000:0010")
		write("infiniband/"+device+"/fw_ver", "20.1.2")
		write("infiniband/"+device+"/hw_rev", "0")
		write("infiniband/"+device+"/hca_type", "MT4129")
		write("infiniband/"+device+"/sys_image_guid", "0002:c903:0000:0013")
		write(fmt.Sprintf("infiniband_mad/umad%d/ibdev", i), device)
		write(fmt.Sprintf("infiniband_mad/umad%d/port", i), num)
	}
	return files
}

func TestPorts(t *testing.T) {
	files := hostWith("mlx5_0/1 InfiniBand 4:_ACTIVE 100_Gb/sec_(4X_EDR)", "mlx5_1/1 Ethernet 4:_ACTIVE 25_Gb/sec_(1X_EDR)")
	for _, tt := range []struct{ flags, want string }{
		{"", `port      default  network     state   physical_state  width  speed  lid  sm_lid  role  pair  planes  umad   firmware  port_guid           unusable
mlx5_0/1  True     infiniband  active  link_up         4x     edr     16       1  both     -       -  umad0  20.1.2    0x0002c90300000000  -
mlx5_1/1  False    roce        active  link_up         1x     edr     17       1  gsi      -       -  umad1  20.1.2    0x0002c90300000001  not InfiniBand
`},
		{"-o jsonl -C mlx5_1", `{"schema":"host_port/1","port":"mlx5_1/1","default":false,"network":"roce","state":"active","physical_state":"link_up","width":"1x","speed":"edr","rate_gbps":25.0,"lid":17,"sm_lid":1,"role":"gsi","pair":null,"planes":null,"umad":"umad1","firmware":"20.1.2","port_guid":"0x0002c90300000001","node_guid":"0x0002c90300000010","system_image_guid":"0x0002c90300000013","model":"MT4129","hardware":"0","board":null,"lmc":0,"capabilities":"0x2651e848","unusable":"not InfiniBand"}` + "\n"},
		{"--details -C mlx5_0", `port               mlx5_0/1
default            True
network            infiniband
state              active
physical_state     link_up
width              4x
speed              edr
rate_gbps          100
lid                16
sm_lid             1
role               both
pair               -
planes             -
umad               umad0
firmware           20.1.2
port_guid          0x0002c90300000000
node_guid          0x0002c90300000010
system_image_guid  0x0002c90300000013
model              MT4129
hardware           0
board              -
lmc                0
capabilities       0x2651e848
unusable           -
`},
		{"-C mlx5_9", "unknown port mlx5_9/*; leave -C and -P out to list all"},
		{"-C mlx5_0 -P 2", "unknown port mlx5_0/2; leave -C and -P out to list all"},
	} {
		settings := new(session.Settings)
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		settings.AddFlags(flags, flags)
		details := flags.Bool("details", false, "")
		if err := flags.Parse(strings.Fields(tt.flags)); err != nil {
			t.Fatal(err)
		}
		got, err := hostPorts(settings, files, *details)
		if err != nil {
			got += err.Error()
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.flags, d)
		}
	}
}
