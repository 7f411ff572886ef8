package provider

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/starling-network/starling/node/serve"
)

// ParseAdapter reads a value of the flag --adapter: NAME=DIR, and options after commas.
func ParseAdapter(value string) (a Adapter, err error) {
	bad := func(why string) (Adapter, error) {
		return a, fmt.Errorf("--adapter %s: %s; it is NAME=DIR[,model=NUMBER][,job=JOB][,part=PERCENT]", value, why)
	}
	parts := strings.Split(value, ",")
	named, ok := serve.ParseAdapter(parts[0])
	if a.Name, a.Folder = named.Name, named.Dir; !ok {
		return bad("no name, or no folder")
	}
	for _, p := range parts[1:] {
		key, text, _ := strings.Cut(p, "=")
		switch key {
		case "model":
			if a.Model, err = strconv.ParseUint(text, 10, 64); err != nil || a.Model == 0 {
				return bad("model is no number of one")
			}
		case "job":
			if a.Job = text; text == "" {
				return bad("job is empty")
			}
		case "part":
			percent, err := strconv.ParseFloat(text, 64)
			if err != nil || !(percent >= 0 && percent <= 100) {
				return bad("part is no percentage from 0 to 100")
			}
			a.PartPPM = uint32(percent * 10_000)
		default:
			return bad("there is no option " + strconv.Quote(key))
		}
	}
	return a, nil
}
