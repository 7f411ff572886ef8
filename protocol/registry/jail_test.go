package registry

import (
	"errors"
	"testing"

	"github.com/starling-network/starling/protocol/run/crew"
)

// A convicted participant may be matched again after some time, once its machine was measured since: with an empty
// history, and a conviction that is remembered, also when it registers again.
func TestUnjail(t *testing.T) {
	params := params
	params.JailBlocks = 100
	p, err := Register(valid(), params, 1)
	if err != nil {
		t.Fatal(err)
	}
	p = p.Rated(1000, 50).Audited(true)
	if _, err := p.Unjail(params, 100); !errors.Is(err, ErrJail) {
		t.Errorf("who is not barred: %v", err)
	}
	p = p.Jail(60)
	soon, late := 60+params.JailBlocks-1, 60+params.JailBlocks
	if _, err := p.Unjail(params, late); !errors.Is(err, ErrJail) {
		t.Errorf("without a measurement: %v", err)
	}
	p = p.Rated(1000, 61)
	if _, err := p.Unjail(params, soon); !errors.Is(err, ErrJail) {
		t.Errorf("too soon: %v", err)
	}
	if p, err = p.Unjail(params, late); err != nil || p.Jailed || p.Passed != 0 || p.Convicted != 60 ||
		!p.Eligible(crew.Worker, params) {
		t.Errorf("in time: %v, %+v", err, p)
	}
	next, err := Register(valid(), params, late)
	if err != nil || p.Renew(next).Convicted != 60 {
		t.Errorf("a registration forgets the conviction: %v", err)
	}
}
