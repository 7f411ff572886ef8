// Package quotes draws quotes of machines that no maker has signed, and roots that governance pins.
package quotes

import (
	"context"

	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/module/attested"
	"github.com/starling-network/starling/protocol/attestation"
	"github.com/starling-network/starling/protocol/attestation/snp"
	"github.com/starling-network/starling/sim/random/draw"
)

// Pin makes a proposal that pins a few roots.
func Pin(d draw.Source, authority string) *registrypb.MsgPinRoots {
	m := &registrypb.MsgPinRoots{Authority: authority}
	for range d.Intn(3) {
		root := registrypb.Root{Technology: draw.Pick(d, []string{"sev-snp", "tdx", "sgx"}), Digest: make([]byte, 32)}
		d.Read(root.Digest)
		m.Roots = append(m.Roots, root)
	}
	return m
}

// Submit lets a participant send a quote that no maker has signed, for a block that may have a beacon: it is refused.
func Submit(ctx context.Context, c *client.Client, d draw.Source) error {
	height, beacon, err := c.Registry.Beacon(ctx)
	if err != nil {
		return err
	}
	p, err := c.Registry.Participant(ctx, c.Address())
	if err != nil {
		return err
	}
	e := attestation.Evidence{Quote: make([]byte, snp.Size), Certificates: [][]byte{make([]byte, d.Intn(100))}}
	d.Read(e.Quote[8:snp.Signed])
	e.Quote[0] = byte(d.UpTo(1, 3))
	if d.Often(80) {
		data := attestation.ReportData(attestation.Nonce(height, beacon), p.ID, p.PeerID)
		copy(e.Quote[0x50:], data[:])
	}
	return attested.Client{Account: c}.Submit(ctx, height-d.UpTo(-1, 2), e)
}
