package income

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/estimate/capacity"
	"github.com/starling-network/starling/protocol/registry"
)

// capacityAnswer is the properties that were measured in addition to the rate, for programs.
type capacityAnswer struct {
	Memory *capacity.Memory `json:"memory,omitempty"` // nil: none is declared, or that of an accelerator
	Disk   capacity.Disk    `json:"disk"`
	Peers  []capacity.Peer  `json:"peers"`
}

// capacity measures memory, disk and round trips. The machine declares the disk that it may fill.
func (o *estimateOptions) capacity(ctx context.Context, c *terminal.Console) (a *capacityAnswer, err error) {
	a = &capacityAnswer{}
	if h := o.machine.Hardware; h.Memory > 0 && h.Kind == registry.CPU {
		c.Say(fmt.Sprintf("writing and reading %d MiB of memory", h.Memory))
		m, err := capacity.Touch(ctx, h.Memory)
		if err != nil {
			return nil, err
		}
		a.Memory = &m
	}
	a.Disk = capacity.Write(cmp.Or(o.target.Home, "."), o.disk)
	o.machine.Hardware.Disk = a.Disk.Share
	a.Peers, err = capacity.Peers(ctx, o.target.Network)
	return a, err
}

func printCapacity(w io.Writer, a *capacityAnswer) {
	if a == nil {
		return
	}
	if m := a.Memory; m != nil && m.Short() {
		fmt.Fprintf(w, "memory\t%d MiB are declared, and the system has %d left: a unit that needs them is late or fails\n",
			m.Declared, m.Left)
	} else if m != nil {
		fmt.Fprintf(w, "memory\t%d MiB, all written and read\n", m.Touched)
	}
	if a.Disk.Error != "" {
		fmt.Fprintf(w, "disk\tnot measured: %s\n", a.Disk.Error)
	} else {
		printDisk(w, a.Disk)
	}
	printPeers(w, a.Peers)
}

func printDisk(w io.Writer, d capacity.Disk) {
	fmt.Fprintf(w, "disk\t%s bytes a second written, %s read; %d MiB of %d free may be taken\n",
		terminal.Number(d.Write), terminal.Number(d.Read), d.Share, d.Free)
}

func printPeers(w io.Writer, peers []capacity.Peer) {
	reached, least, most := 0, 0., 0.
	for _, p := range peers {
		if p.Error != "" {
			continue
		}
		if reached++; least == 0 || p.Millis < least {
			least = p.Millis
		}
		most = max(most, p.Millis)
	}
	if reached == 0 {
		fmt.Fprintf(w, "peers\t%d were drawn, and none was reached: starling doctor says why\n", len(peers))
		return
	}
	fmt.Fprintf(w, "peers\t%d of %d that were drawn answered, in %.3g to %.3g ms\n", reached, len(peers), least, most)
}
