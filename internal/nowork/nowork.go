// Package nowork is a referee for chains on which jobs are ordered whose work nobody computes: of tests of what
// accounts may do, and of random operations. It takes every opening, and plays no dispute.
package nowork

import (
	"errors"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/training/works"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run"
)

// Open is a works.Referee.
func Open(canon.Digest, []byte) (works.Case, error) { return work{}, nil }

type work struct{}

func (work) Bound(run.Terms) error { return nil }

func (work) Config(string, run.AuditTarget, string, int64) (dispute.Config, error) {
	return dispute.Config{}, dispute.ErrConfig
}

func (work) Parts(dispute.Claim) uint64 { return 0 }

func (work) Judge(dispute.Claim, []byte) (dispute.Ruling, error) {
	return dispute.Ruling{}, errNothing
}

func (work) Refute(run.Combination, []byte) (string, error) { return "", errNothing }

var errNothing = errors.New("nowork: nothing can be shown of it")
