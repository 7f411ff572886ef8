package hosting

import (
	"context"
	"fmt"
	"net/http"

	"github.com/starling-network/starling/web/openai"
)

// Several are the providers of several models in one process, such as a base and its adapters: each model has its place
// on the network, its channels and its vouchers. It is an openai.Model.
type Several struct {
	first  *Provider
	byName map[string]*Provider
}

// Join returns the providers as one, by the names of their models. All have one engine, that of the first.
func Join(first *Provider, byName map[string]*Provider) Several { return Several{first, byName} }

// Handler gives the models the payments of requests that a handler answers.
func (s Several) Handler(inner http.Handler) http.Handler { return s.first.Handler(inner) }

// Models lists the models.
func (s Several) Models() []openai.Info { return s.first.Models() }

// Prompt renders a conversation by the chat template of a model.
func (s Several) Prompt(name string, conversation []openai.Message) (string, []string, error) {
	return s.first.Prompt(name, conversation)
}

// Generate writes a text that is paid through a channel of the model that the request names.
func (s Several) Generate(ctx context.Context, r openai.Request,
	emit func(openai.Piece) error) (openai.Result, error) {
	p := s.byName[r.Model]
	if p == nil {
		return openai.Result{}, fmt.Errorf("%w as %q", openai.ErrModel, r.Model)
	}
	return p.Generate(ctx, r, emit)
}
