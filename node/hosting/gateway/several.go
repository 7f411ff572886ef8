package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/protocol/hosting"
	"github.com/starling-network/starling/web/openai"
)

// Several are gateways to a model and to adapters of it, which are paid from one budget. A provider that lies about one
// of them is not asked for any. It is an openai.Model.
type Several struct{ all []*Gateway }

// OpenSeveral opens a gateway to a model, and to adapters of it, whose conflicts are in folders of their own,
// and which are served by the names of listing.Adapters, by their numbers. The caller closes it.
func OpenSeveral(ctx context.Context, c Config, adapters []hosting.Model, names map[uint64]string,
	dir func(hosting.Model) string) (s *Several, err error) {
	c.models = 1 + len(adapters)
	first, err := Open(ctx, c)
	if err != nil {
		return nil, err
	}
	s = &Several{all: []*Gateway{first}}
	c.Purse = first.purse
	for _, m := range adapters {
		c.Model, c.Dir, c.Served = m, dir(m), names[m.ID]
		g, err := Open(ctx, c)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.all = append(s.all, g)
	}
	for _, g := range s.all {
		for _, k := range s.all {
			if k == g {
				continue
			}
			g.kin = append(g.kin, k)
			for _, about := range k.Standings() { // convicted before
				if about.Excluded != "" {
					g.router.exclude(about.Provider, about.Excluded)
				}
			}
		}
	}
	return s, nil
}

// of is the gateway that serves a model by a name, or nil.
func (s *Several) of(name string) *Gateway {
	i := slices.IndexFunc(s.all, func(g *Gateway) bool { return g.config.Served == name })
	if i < 0 {
		return nil
	}
	return s.all[i]
}

// Close ends checks that are under way, and lets another process use the folders. Channels stay open.
func (s *Several) Close() error {
	var errs []error
	for _, g := range slices.Backward(s.all) { // the first has the channels
		errs = append(errs, g.Close())
	}
	return errors.Join(errs...)
}

// CloseChannels asks to close all channels. The rest of each returns after the blocks of closing.
func (s *Several) CloseChannels(ctx context.Context) (closed int, _ error) {
	return s.all[0].CloseChannels(ctx)
}

// Wait waits until no check is under way.
func (s *Several) Wait() {
	for _, g := range s.all {
		g.Wait()
	}
}

// Counts are those of all models since the process began, but for the sum that is spent, which is of the folder.
func (s *Several) Counts() (sum Counts) {
	for _, g := range s.all {
		c := g.Counts()
		sum.Answers, sum.Failovers = sum.Answers+c.Answers, sum.Failovers+c.Failovers
		sum.Checked, sum.Conflicts = sum.Checked+c.Checked, sum.Conflicts+c.Conflicts
		sum.Spent = c.Spent // of one purse
	}
	return sum
}

// Standings lists the providers that were asked, for each model.
func (s *Several) Standings() (list []Standing) {
	for _, g := range s.all {
		list = append(list, g.Standings()...)
	}
	return list
}

// Models lists the models.
func (s *Several) Models() (list []openai.Info) {
	for _, g := range s.all {
		list = append(list, g.Models()...)
	}
	return list
}

// Prompt leaves a conversation as it is.
func (s *Several) Prompt(string, []openai.Message) (string, []string, error) { return "", nil, nil }

// Generate writes a text by the providers of the model that the request names.
func (s *Several) Generate(ctx context.Context, r openai.Request,
	emit func(openai.Piece) error) (openai.Result, error) {
	g := s.of(r.Model)
	if g == nil {
		return openai.Result{}, fmt.Errorf("%w as %q", openai.ErrModel, r.Model)
	}
	return g.Generate(ctx, r, emit)
}
