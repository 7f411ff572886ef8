package money

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/starling-network/starling/node/serve"
	"github.com/starling-network/starling/web/openai"
)

const adapters = 16

// adapted writes a text with each of 16 adapters: all at once over one base, and by a server of one adapter after
// another.
func adapted(ctx context.Context, dir string, o Options) (a Adapters, err error) {
	a.Adapters, a.Tokens = adapters, o.Tokens
	c, err := describe(o.Width, o.Layers)
	if err != nil {
		return a, err
	}
	for _, n := range c.Tensors() {
		a.Parameters += n.Shape.Elements()
	}
	base := filepath.Join(dir, "base")
	if err := writeModel(c, base); err != nil {
		return a, err
	}
	var all []serve.Adapter
	for i := range adapters {
		x := serve.Adapter{Name: fmt.Sprint("adapter-", i), Dir: filepath.Join(dir, fmt.Sprint("adapter-", i))}
		if err := writeAdapter(c, uint64(i+1), x.Dir); err != nil {
			return a, err
		}
		all = append(all, x)
	}
	began := time.Now()
	together, err := texts(ctx, base, o, all)
	if err != nil {
		return a, err
	}
	a.Together = lap(&began)
	for i := range all {
		alone, err := texts(ctx, base, o, all[i:i+1])
		if err != nil {
			return a, err
		}
		if alone[0] != together[i] {
			return a, fmt.Errorf("%s writes %q alone, and %q with the others", all[i].Name, alone[0], together[i])
		}
	}
	a.InTurn = lap(&began)
	return a, nil
}

// texts loads the base with adapters, and writes a text with each of them at the same time.
func texts(ctx context.Context, base string, o Options, list []serve.Adapter) ([]string, error) {
	e, err := serve.Open(base, serve.Options{Name: "base", Adapters: list, Threads: o.Threads, Texts: len(list)})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	out := make([]string, len(list))
	group, ctx := errgroup.WithContext(ctx)
	for i, x := range list {
		group.Go(func() error {
			_, err := e.Generate(ctx, openai.Request{Model: x.Name, Prompt: "Once upon a time", Max: o.Tokens, Likely: -1},
				func(p openai.Piece) error {
					out[i] += p.Text
					return nil
				})
			return err
		})
	}
	return out, group.Wait()
}
