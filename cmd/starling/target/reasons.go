package target

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/starling-network/starling/protocol/standing"
)

// PrintReasons shows what a participant does and waits for, at a height.
func PrintReasons(reasons []standing.Reason, height int64) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, r := range reasons {
		at := r.Job
		if r.Round > 0 {
			at = fmt.Sprintf("%s round %d", r.Job, r.Round)
		}
		until := ""
		if r.Until > height {
			until = fmt.Sprintf(" (until height %d, in %d blocks)", r.Until, r.Until-height)
		}
		fmt.Fprintf(w, "%s\t%s\t%s%s\n", r.Kind, at, r.Text, until)
		if r.Do != "" {
			fmt.Fprintf(w, "\t\tto do: %s\n", r.Do)
		}
	}
	return w.Flush()
}
