package registrypb

import (
	"reflect"
	"testing"

	"github.com/starling-network/starling/protocol/registry"
)

// A value that is converted to a message and back stays the same, and an unknown number becomes one that the rules
// refuse.
func TestRulesThroughMessages(t *testing.T) {
	if got := FromParams(registry.DefaultParams()).Rule(); !reflect.DeepEqual(got, registry.DefaultParams()) {
		t.Errorf("%+v", got)
	}
	h := registry.Hardware{Kind: registry.GPU, Memory: 1, Upload: 2, Region: "eu", Jurisdiction: "DE", Domain: "rack",
		Disk: 3, Cores: 4, Devices: 5, Model: "h100"}
	if got := FromHardware(h).Rule(); got != h {
		t.Errorf("%+v", got)
	}
	for _, n := range []int32{-1, 256 + 3} {
		if Tier(n).Rule() <= registry.Gold || MachineClass(n).Rule() <= registry.Datacentre {
			t.Errorf("%d is taken for a tier or a class", n)
		}
	}
}
