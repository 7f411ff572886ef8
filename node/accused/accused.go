// Package accused plays the disputes about answers of hosted models for one account, as provider or as accuser, a turn
// at a time.
//
// It has no clock and follows no blocks: its caller asks it for a turn with each. The chain decides by
// chain/referee/answered.
package accused

import (
	"context"
	"errors"
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/answered"
	"github.com/starling-network/starling/chain/referee/witness"
	"github.com/starling-network/starling/node/checked"
	"github.com/starling-network/starling/protocol/answer"
	"github.com/starling-network/starling/protocol/dispute"
)

// ErrRight is for an accusation of an answer in which the model gives every token.
var ErrRight = errors.New("the answer is what the model gives: its accuser would lose the bond")

// Network is what a party asks of the chain: client/module.Hosting.
type Network interface {
	Accuse(ctx context.Context, s answer.Signed, from uint32, program []byte) (uint64, error)
	Accusation(ctx context.Context, id uint64) (answer.Accusation, error)
	Accusations(ctx context.Context, open bool) ([]answer.Accusation, error) // all, or open ones
	Shown(ctx context.Context, id uint64) (s answer.Signed, program []byte, err error)
	Move(ctx context.Context, id uint64, m dispute.Move) error
}

// Next waits for the next block, and returns its height: client.Heights.
type Next func(context.Context) (int64, error)

// Party is an account with a model. It is for one goroutine.
type Party struct {
	Account string // address
	Model   *checked.Model
	// Adapted is the model with the adapter that makes a root of its weights; nil: there are no adapters. The error wraps
	// checked.ErrOther if it is none of them.
	Adapted func(weights canon.Digest) (*checked.Model, error)
	Threads int
	Network Network

	runs map[uint64]*witness.Run // of accusations that are open
}

// Accuse checks a receipt, accuses it of its first wrong token, and returns the number of the accusation: that of the
// open one, if the account has accused it before. The error is ErrRight if there is no wrong token, answer.ErrOpen if
// another account has accused it, or one of checked.Model.Verify.
func (p *Party) Accuse(ctx context.Context, s answer.Signed) (uint64, error) {
	if err := p.Model.Verify(s); err != nil {
		return 0, err
	}
	wrong, err := p.Model.Check(s.Receipt, p.Threads)
	if err != nil {
		return 0, err
	}
	if wrong < 0 {
		return 0, ErrRight
	}
	open, err := p.Network.Accusations(ctx, true)
	if err != nil {
		return 0, err
	}
	for _, a := range open {
		if a.Receipt != s.Receipt.Digest() || a.From != uint32(wrong) {
			continue
		}
		if a.Accuser != p.Account {
			return 0, fmt.Errorf("%w: by %s, as accusation %d", answer.ErrOpen, a.Accuser, a.ID)
		}
		return a.ID, nil
	}
	code, err := p.Model.Program(s.Receipt.Length())
	if err != nil {
		return 0, err
	}
	return p.Network.Accuse(ctx, s, uint32(wrong), code.Encode())
}

// Turn makes the next move of an accusation if it is the account's turn, and returns the accusation before it.
func (p *Party) Turn(ctx context.Context, id uint64) (answer.Accusation, error) {
	a, err := p.Network.Accusation(ctx, id)
	if err != nil {
		return a, err
	}
	if !a.Open() {
		delete(p.runs, id)
		return a, nil
	}
	if a.Game.Mover() != p.Account {
		return a, nil
	}
	run, err := p.run(ctx, a)
	if err != nil {
		return a, err
	}
	next := dispute.NextChallengerMove
	if a.Game.Turn == dispute.Asserter {
		next = dispute.NextAsserterMove
	}
	m, err := next(a.Game, run)
	if err != nil {
		return a, fmt.Errorf("accusation %d: %w", id, err)
	}
	return a, p.Network.Move(ctx, id, m)
}

// run is the account's own execution of the program of an accusation.
func (p *Party) run(ctx context.Context, a answer.Accusation) (*witness.Run, error) {
	if run := p.runs[a.ID]; run != nil {
		return run, nil
	}
	s, code, err := p.Network.Shown(ctx, a.ID)
	if err != nil {
		return nil, err
	}
	m := p.Model
	if s.Receipt.Weights != m.Weights {
		if p.Adapted == nil {
			return nil, fmt.Errorf("%w: accusation %d", checked.ErrOther, a.ID)
		}
		if m, err = p.Adapted(s.Receipt.Weights); err != nil {
			return nil, fmt.Errorf("accusation %d: %w", a.ID, err)
		}
	}
	c, err := answered.Open(s.Receipt, a.From, code)
	if err != nil {
		return nil, err
	}
	run, err := c.Witness(p.Threads, m.Tensors, m.Roots)
	if err != nil {
		return nil, err
	}
	if p.runs == nil {
		p.runs = map[uint64]*witness.Run{}
	}
	p.runs[a.ID] = run
	return run, nil
}

// Play makes the moves of the account in accusations, with each block, until all are decided or next fails. A move that
// fails is made again with the next block, because silence costs the bond; failed is given its error.
func (p *Party) Play(ctx context.Context, ids []uint64, next Next,
	failed func(id uint64, err error)) ([]answer.Accusation, error) {
	var over []answer.Accusation
	for {
		var open []uint64
		for _, id := range ids {
			a, err := p.Turn(ctx, id)
			switch {
			case err != nil:
				failed(id, err)
				open = append(open, id)
			case a.Open():
				open = append(open, id)
			default:
				over = append(over, a)
			}
		}
		if ids = open; len(ids) == 0 {
			return over, nil
		}
		if _, err := next(ctx); err != nil {
			return over, err
		}
	}
}

// Defend makes the moves of a provider in all accusations of it, with each block, until next fails: its error is
// returned. failed is given the error of an accusation in which the account has no move, and, with number 0, that of
// asking for them: the next block tries again.
func (p *Party) Defend(ctx context.Context, next Next, failed func(id uint64, err error)) error {
	for {
		all, err := p.Network.Accusations(ctx, true)
		if err != nil {
			failed(0, err)
		}
		for _, a := range all {
			if a.Provider != p.Account {
				continue
			}
			if _, err := p.Turn(ctx, a.ID); err != nil {
				failed(a.ID, err)
			}
		}
		if _, err := next(ctx); err != nil {
			return err
		}
	}
}
