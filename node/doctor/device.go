package doctor

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/starling-network/starling/compute/device"
	"github.com/starling-network/starling/node/accelerator"
	"github.com/starling-network/starling/node/accelerator/admission"
)

// devices lists the devices of the OpenCL drivers, and when each passed the comparison suite in the folder of a party.
func devices(ctx context.Context, o Options) Finding {
	list, err := accelerator.List(ctx, accelerator.Options{})
	if err != nil {
		return Finding{Level: OK, Text: "none for exact work: " + err.Error()}
	}
	if len(list) == 0 {
		return Finding{Level: OK, Text: "none for exact work: the OpenCL drivers have none"}
	}
	var texts []string
	for i, c := range list {
		passed, ok := time.Time{}, false
		if o.Home != "" {
			passed, ok = admission.Passed(filepath.Join(o.Home, admission.FileRecord), accelerator.Options{}, c)
		}
		texts = append(texts, deviceText(i, c, passed, ok))
	}
	return Finding{Level: OK, Text: strings.Join(texts, "; ")}
}

// deviceText says whether a device is exact.
func deviceText(at int, c device.Capabilities, passed time.Time, ok bool) string {
	text := fmt.Sprintf("opencl:%d %s, driver %s, %s: ", at, c.Name, c.Driver, gib(uint64(c.Memory)))
	switch missing := c.Missing(); {
	case missing != "":
		return text + "not exact, it has no " + missing
	case !ok:
		return text + "not compared yet (starling bench device)"
	}
	if !c.Double {
		text += "without numbers of 64 bits, for version 2 of the numerics: "
	}
	return text + "exact, compared " + passed.Format(time.DateTime)
}
