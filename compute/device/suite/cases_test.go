package suite

import (
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/program"
)

// TestEveryKindIsCompared demands an output of every kind that computes, but for Grade, whose rules are programs of
// their authors: the processor computes it in its place.
func TestEveryKindIsCompared(t *testing.T) {
	compared := map[program.Kind]bool{program.Input: true, program.Constant: true, program.Grade: true}
	for _, c := range cases(kernel.Version1, 64) {
		for _, o := range c.program.Outputs {
			compared[c.program.Ops[o.Value].Kind] = true
		}
	}
	for k := range program.Kind(255) {
		if !strings.HasPrefix(k.String(), "Kind(") && !k.Views() && !compared[k] {
			t.Errorf("%s is not compared", k)
		}
	}
}
