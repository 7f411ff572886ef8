// Package nowork is a referee for chains on which no party computes the work of the jobs: tests of the rights of
// accounts, and random operations. It accepts every opening, and plays no dispute.
package nowork

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/training/works"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// Open is a works.Referee. It takes every work to be of the version of the numerics of a new network.
func Open(spec canon.Digest, _ []byte, numerics uint32) (works.Case, error) {
	if is := market.DefaultParams().NumericsAt(1); numerics > 0 && is != numerics {
		return nil, fmt.Errorf("%w: version %d, and the work has version %d", market.ErrNumerics, numerics, is)
	}
	return refuses{spec}, nil
}

type refuses struct{ spec canon.Digest }

// Bases has the digest of the specification, in place of those in it.
func (r refuses) Bases() []canon.Digest { return []canon.Digest{r.spec} }

func (refuses) Bound(terms.Terms) error { return nil }

func (refuses) Decidable(uint64) (uint64, error) { return 0, nil }

func (refuses) Config(string, work.AuditTarget, string, int64) (dispute.Config, error) {
	return dispute.Config{}, dispute.ErrConfig
}

func (refuses) Parts(dispute.Claim) uint64 { return 0 }

func (refuses) Judge(dispute.Claim, []byte) (dispute.Ruling, error) {
	return dispute.Ruling{}, errNothing
}

func (refuses) Refute(work.Combination, []byte) (string, error) { return "", errNothing }

var errNothing = errors.New("nowork: nothing can be shown of it")
