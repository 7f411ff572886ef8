package people

import (
	cmttypes "github.com/cometbft/cometbft/types"

	chainregistry "github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/sim/ledger"
)

// Memory of the GPUs of two classes, in MiB. A machine without one is a processor.
const (
	consumerMemory     = 8 << 10
	professionalMemory = 16 << 10
)

// kind is a machine with the memory of its GPU.
type kind struct {
	rate   uint64 // operations a second
	memory uint64 // MiB; 0: it is a processor
}

// hardware is what the machine declares.
func (k kind) hardware() registry.Hardware {
	if k.memory == 0 {
		return registry.Hardware{}
	}
	return registry.Hardware{Kind: registry.GPU, Memory: k.memory, Devices: 1}
}

// mixed are the machines of a network of three classes, whose speeds differ by a factor of five.
var mixed = map[string]kind{
	"worker-0": {pace / 2, 0}, "worker-1": {pace / 2, 0}, "worker-2": {pace, consumerMemory},
	"worker-3": {3 * pace / 2, consumerMemory}, "worker-4": {5 * pace / 2, professionalMemory},
}

// joining are machines that join mixed, one of each class.
var joining = []kind{{pace / 2, 0}, {pace, consumerMemory}, {3 * pace, professionalMemory}}

// classed is a genesis whose classes are of machines as slow as those that are played.
func classed(doc *cmttypes.GenesisDoc) error {
	p := registry.DefaultParams()
	p.Classes = []registry.ClassRule{
		{Class: registry.Professional, Kind: registry.GPU, Memory: professionalMemory, Rate: 2 * pace,
			MultiplierPPM: 1_500_000},
		{Class: registry.Consumer, Kind: registry.GPU, Memory: consumerMemory, Rate: pace / 2, MultiplierPPM: 1_000_000},
	}
	p.ProcessorRate = pace / 2
	return ledger.SetParams(doc, chainregistry.Name, p)
}
