package wire

import (
	"fmt"

	"github.com/starling-network/starling/compute/kernel"
)

// Version is the application version that a validator reports: the version of its numerics. Consensus does not use it.
var Version = fmt.Sprintf("numerics %d", kernel.Newest)
