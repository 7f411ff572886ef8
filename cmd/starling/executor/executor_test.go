package executor

import (
	"strings"
	"testing"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/confine"
	"github.com/starling-network/starling/node/torch"
)

// Who says on the command line that PyTorch runs in a reduced box, is told what that means, and need not say it again.
func TestReducedBoxIsConfirmedForEachStart(t *testing.T) {
	c := &terminal.Console{Quiet: true}
	reduced := &torch.Options{Box: confine.Reduced}
	if err := ConfirmReduced(c, reduced, false); terminal.ExitCode(err) != terminal.ExitUsage ||
		!strings.Contains(err.Error(), "nobody has confirmed it") {
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
