// Package lies draws accusations of answers of hosted models, right and wrong ones, and the moves of their disputes.
// The answers are of no model: the program that checks them gives the lowest token of the text.
package lies

import (
	"context"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/answered"
	"github.com/starling-network/starling/chain/x/hosting/hostingpb"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/compute/model/check/given"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/protocol/answer"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/hosting"
	"github.com/starling-network/starling/sim/random/draw"
)

// Book has the places and accusations of the chain.
type Book interface {
	Places(ctx context.Context, model uint64) ([]hosting.Place, error)
	Accusations(ctx context.Context, open bool) ([]answer.Accusation, error)
	Shown(ctx context.Context, id uint64) (answer.Signed, []byte, error)
}

// length is that of a text. An answer is right if all its tokens, and those of its prompt, are length.
const length = 64

// checks is the program, with its weights.
func checks() (*program.Program, *tensor.Tensor, error) {
	b, weights := program.NewBuilder(), tensor.New(tensor.Make(tensor.Float32, 4))
	inputs := given.Answer{}.Inputs(length)
	for _, name := range []string{given.Place, given.Draw, given.Key} {
		b.Input(name, inputs[name].Shape)
	}
	b.Input(parts.Param+"w", weights.Shape)
	least, err := b.Append(program.Operator{Kind: program.ReduceMin, Ints: []int64{0},
		In: []int32{int32(b.Input(given.Text, inputs[given.Text].Shape))}})
	if err != nil {
		return nil, nil, err
	}
	b.Output(given.Wrong, least)
	p, err := b.Finish()
	return p, weights, err
}

// Next is an accusation by me, or a move in one, with its sender; "": there is none. key is the key of an account, nil
// if there is none.
func Next(ctx context.Context, d draw.Source, b Book, chain, me string,
	key func(address string) wallet.Signer) (sender string, m sdk.Msg, _ error) {
	p, weights, err := checks()
	if err != nil {
		return "", nil, err
	}
	open, err := b.Accusations(ctx, true)
	if err != nil {
		return "", nil, err
	}
	if len(open) > 0 && d.Often(80) {
		a := draw.Pick(d, open)
		move, err := next(ctx, b, a, weights)
		if d.Often(5) {
			move = dispute.Move{Pick: &dispute.Pick{}}
		}
		return a.Game.Mover(), &hostingpb.MsgMove{Sender: a.Game.Mover(), Accusation: a.ID, Body: move.Encode()}, err
	}
	places, err := b.Places(ctx, 0)
	if err != nil || len(places) == 0 {
		return "", nil, err
	}
	at := draw.Pick(d, places)
	signer := key(at.Provider)
	if at.Held() == 0 || signer == nil || at.Provider == me {
		return "", nil, nil
	}
	r := answer.Receipt{Chain: chain, Model: at.Model, Provider: at.Provider, Program: p.Digest(), TopP: answer.Million,
		Weights: train.FrozenRoot([]canon.Digest{weights.Root()}), Seed: d.Uint64(),
		Height: sdk.UnwrapSDKContext(ctx).BlockHeight(),
		Asked:  1, Answer: []int32{length}, Prompt: make([]int32, length-1)}
	for i := range r.Prompt {
		r.Prompt[i] = length
	}
	if d.Often(50) {
		r.Answer[0]--
	}
	s, err := answer.Sign(r, signer.PublicKey(), signer.Sign)
	return me, &hostingpb.MsgAccuse{Sender: me, Receipt: s.Encode(), Program: p.Encode()}, err
}

// next is the move of the party whose turn it is, by an honest execution.
func next(ctx context.Context, b Book, a answer.Accusation, weights *tensor.Tensor) (dispute.Move, error) {
	s, code, err := b.Shown(ctx, a.ID)
	if err != nil {
		return dispute.Move{}, err
	}
	c, err := answered.Open(s.Receipt, a.From, code)
	if err != nil {
		return dispute.Move{}, err
	}
	run, err := c.Witness(1, map[string]*tensor.Tensor{"w": weights}, []canon.Digest{weights.Root()})
	if err != nil {
		return dispute.Move{}, err
	}
	if a.Game.Turn == dispute.Asserter {
		return dispute.NextAsserterMove(a.Game, run)
	}
	return dispute.NextChallengerMove(a.Game, run)
}
