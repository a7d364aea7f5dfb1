package picture

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"
	"time"
)

func testChart() *Chart {
	begin := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	hour := func(n int) time.Time { return begin.Add(time.Duration(n) * time.Hour) }
	c := &Chart{Title: "leaf<1>/7: errors", From: hour(0), To: hour(20), Gaps: [][2]time.Time{{hour(8), hour(12)}}, Marks: []ChartMark{{hour(4), "link.down <x>"}}}
	for h := range 20 {
		if h < 8 || h >= 12 {
			c.Points = append(c.Points, ChartPoint{hour(h), time.Hour, float64(h)})
		}
	}
	return c
}

// TestChart: a gap breaks the line, events are marked, and names are text.
func TestChart(t *testing.T) {
	c := testChart()
	if runs := c.Runs(); len(runs) != 2 || len(runs[0]) != 8 || len(runs[1]) != 8 || runs[1][7] != [2]float64{0.95, 1} {
		t.Errorf("%v", runs)
	}
	var b bytes.Buffer
	if err := c.SVG(&b); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(&b)
	elements := map[string]int{}
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := token.(xml.StartElement); ok {
			for _, a := range s.Attr {
				if a.Name.Local == "class" {
					elements[a.Value]++
				}
			}
		}
	}
	if elements["line"] != 2 || elements["gap"] != 1 || elements["mark"] != 1 {
		t.Errorf("%v", elements)
	}
	want := `leaf<1>/7: errors
19                   ##
                  #### 
                ######
              ########
            ##########
     ###    ##########
   #####    ##########
 0 ########????##########
       ^
   2026-05-01 00:00    2026-05-01 20:00
^ 2026-05-01 04:00 link.down <x>
? nothing was recorded from 2026-05-01 08:00 to 2026-05-01 12:00
`
	got := c.Text(23, false)
	for _, line := range []string{"19                   ##\n", "????", "? nothing was recorded from 2026-05-01 08:00", "^ 2026-05-01 04:00 link.down <x>"} {
		if !strings.Contains(got, line) {
			t.Errorf("%q is missing in\n%s%s", line, got, want)
		}
	}
	if blocks := c.Text(23, true); !strings.Contains(blocks, "█") || !strings.Contains(blocks, "▃") {
		t.Errorf("%s", blocks)
	}
	empty := &Chart{Title: "x", From: c.From, To: c.To}
	if text := empty.Text(40, true); !strings.Contains(text, "????") {
		t.Errorf("%s", text)
	}
}
