package openai

import (
	"errors"

	"github.com/starling-network/starling/web/openai/strategy"
)

// strategy checks the strategy of a request, and sets its defaults.
func (s *Server) strategy(p *shared, logs bool) error {
	const key = "starling"
	switch {
	case p.Strategy == nil:
		return nil
	case !s.config.Strategies:
		return invalid(key, "unsupported_parameter", "This server answers with one text of a model: leave starling out.")
	case logs:
		return invalid("logprobs", "unsupported_parameter",
			"An answer by more than one text has no logprobs: leave them out.")
	}
	err := p.Strategy.Check()
	if wrong, ok := errors.AsType[*strategy.Error](err); ok {
		return invalid(key+"."+wrong.Key, "invalid_value", wrong.Message)
	}
	return err
}
