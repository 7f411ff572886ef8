package receipt

import (
	"fmt"
	"path"
	"strings"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/cmd/starling/terminal"
)

// Copy says in a line how far the copy of a model is, and why it is not further.
func Copy(p api.Push) string {
	what := p.To
	if p.From != "" {
		what = path.Base(p.From) + " to " + p.To
	}
	text := fmt.Sprintf("%s  %s", what, p.State)
	switch {
	case p.Address != "" && p.State == "done":
		if p.Files > 0 {
			text += fmt.Sprintf(", %d files, %s", p.Files, terminal.Bytes(uint64(p.Bytes)))
		}
		text += ", at " + p.Address
	case p.Bytes > 0:
		text += fmt.Sprintf(", %s of %s", terminal.Bytes(uint64(p.Sent)), terminal.Bytes(uint64(p.Bytes)))
	}
	if p.Reason != nil {
		text += fmt.Sprintf("; %s: %s", p.Reason.Code, p.Reason.Text)
		if p.Reason.Next != "" {
			text += "; " + p.Reason.Next
		}
	}
	return strings.TrimSpace(text)
}
