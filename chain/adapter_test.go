package chain_test

import (
	"errors"
	"fmt"
	"testing"

	sdkerrors "cosmossdk.io/errors"

	"github.com/starling-network/starling/chain/adapter"
)

var errRule = errors.New("rule")

func TestRefusalKeepsCodeAndSentinel(t *testing.T) {
	r := &adapter.ErrorTable{Space: "module", List: []adapter.ErrorCode{{Code: 7, Rule: errRule, Fix: "Do it."}}}
	err := r.Wrap(fmt.Errorf("%w: unit 3", errRule))
	// The SDK wraps what a message returns before it reads the code.
	space, code, log := sdkerrors.ABCIInfo(sdkerrors.Wrapf(err, "message index: %d", 0), false)
	if space != "module" || code != 7 || log != "message index: 0: rule: unit 3" || !errors.Is(err, errRule) {
		t.Errorf("%s %d %q", space, code, log)
	}
	other := errors.New("disk")
	if got := r.Wrap(other); got != other {
		t.Errorf("an internal error becomes %v", got)
	}
	if r.Wrap(nil) != nil {
		t.Error("no error becomes one")
	}
}

func TestRecord(t *testing.T) {
	type value struct {
		N uint64 `cbor:"1,keyasint"`
	}
	c := adapter.Record[value]()
	b, err := c.Encode(value{N: 5})
	if err != nil {
		t.Fatal(err)
	}
	v, err := c.Decode(b)
	if err != nil || v.N != 5 {
		t.Errorf("%+v (%v)", v, err)
	}
	if _, err := c.Decode(append(b, 0)); err == nil {
		t.Error("trailing bytes are taken")
	}
}
