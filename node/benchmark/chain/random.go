package chain

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/sim/random"
)

// RandomOptions say how much is played of the SDK's simulation with our messages (sim/random).
type RandomOptions struct {
	Seeds, Blocks int

	// Again plays a seed in another process, and returns the final application hash; nil: seeds are not replayed in
	// another process.
	Again func(ctx context.Context, seed int64, blocks int) (string, error)
}

// operations of a block of random operations, about.
const operations = 30

// Played is a seed of random operations.
type Played struct {
	Seed     int64     `json:"seed"`
	Blocks   int       `json:"blocks"`
	Executed int       `json:"executed"` // messages
	Refused  int       `json:"refused"`
	Hash     string    `json:"application_hash"`
	Messages []Message `json:"messages,omitempty"`
}

// Message is what became of the messages of a type.
type Message struct {
	Type     string `json:"type"`
	Executed int    `json:"executed"`
	Refused  int    `json:"refused"`
}

// Operations plays a seed of random operations, and counts the coins of every module after every block.
func Operations(ctx context.Context, seed int64, blocks int) (*Played, error) {
	if err := benchmark.Positive("blocks", blocks); err != nil {
		return nil, err
	}
	r, err := random.Play(ctx, random.Options{Seed: seed, Blocks: blocks, Size: operations, Books: true})
	if err != nil {
		return nil, err
	}
	p := &Played{Seed: seed, Blocks: r.Blocks, Hash: r.Hash}
	for _, m := range slices.Sorted(maps.Keys(r.Messages)) {
		t := r.Messages[m]
		p.Executed, p.Refused, p.Messages = p.Executed+t.Executed, p.Refused+t.Refused,
			append(p.Messages, Message{m, t.Executed, t.Refused})
	}
	return p, nil
}

// Replayed is a seed that is played again.
type Replayed struct {
	Played
	Repeats bool   `json:"repeats"` // a second play ends in the same state, and so does another process
	Fault   string `json:"fault"`   // the violated invariant; empty: none
}

// randomly plays seeds, each three times.
func randomly(ctx context.Context, o RandomOptions) ([]Replayed, error) {
	var all []Replayed
	for seed := int64(1); seed <= int64(o.Seeds); seed++ {
		r := Replayed{Played: Played{Seed: seed}}
		p, err := Operations(ctx, seed, o.Blocks)
		if err == nil {
			r.Played = *p
			r.Messages = nil
			r.Repeats, err = o.repeats(ctx, seed, p.Hash)
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			r.Fault = err.Error()
		}
		all = append(all, r)
	}
	return all, nil
}

// repeats reports whether a seed ends in the same state again.
func (o RandomOptions) repeats(ctx context.Context, seed int64, hash string) (bool, error) {
	again, err := random.Play(ctx, random.Options{Seed: seed, Blocks: o.Blocks, Size: operations})
	if err != nil || again.Hash != hash || o.Again == nil {
		return err == nil && again.Hash == hash, err
	}
	other, err := o.Again(ctx, seed, o.Blocks)
	return other == hash, err
}

// bars compare the plays with the expectations.
func (o RandomOptions) bars(all []Replayed) []benchmark.Bar {
	var held, same float64
	for _, p := range all {
		if p.Fault == "" && p.Blocks == o.Blocks {
			held++
		}
		if p.Repeats {
			same++
		}
	}
	return []benchmark.Bar{
		benchmark.AtLeast(fmt.Sprintf("seeds of random operations, %d blocks each, without a fault", o.Blocks), held,
			float64(o.Seeds)),
		benchmark.AtLeast("of them with the same application hash again, and in another process", same, float64(o.Seeds)),
	}
}
