package executor

import (
	"strings"
	"testing"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/confine"
	"github.com/starling-network/starling/node/torch"
)

// A user who confirms a reduced box on the command line gets a warning, and is not asked.
func TestReducedBoxIsConfirmedForEachStart(t *testing.T) {
	c := &terminal.Console{Quiet: true}
	reduced := &torch.Options{Box: confine.Reduced}
	if err := ConfirmReduced(c, reduced, false); terminal.ExitCode(err) != terminal.ExitUsage ||
		!strings.Contains(err.Error(), "not confirmed for this start") {
		t.Errorf("not confirmed: %v", err)
	}
	for _, o := range []*torch.Options{nil, {}, {Box: confine.Full}} {
		if err := ConfirmReduced(c, o, false); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if err := ConfirmReduced(c, reduced, true); err != nil {
		t.Errorf("on the command line: %v", err)
	}
}
