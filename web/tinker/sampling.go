package tinker

import (
	"net/http"

	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/tinker/body"
	"github.com/starling-network/starling/web/tinker/clients"
	"github.com/starling-network/starling/web/tinker/work"
)

// weights are those that the client with a token names by the base model or by a path: nil for the former.
func (s *Server) weights(base, path, by string) (*Path, error) {
	if (base == "") == (path == "") {
		return nil, invalid("model_path", "give either base_model or model_path")
	}
	if path == "" {
		if base != s.base.Name {
			return nil, failure.New(http.StatusNotFound, "BASE_UNKNOWN", "the server has no base model "+base,
				"give the base model "+s.base.Name)
		}
		return nil, nil
	}
	p, ok := ParsePath(path)
	if !ok {
		return nil, invalid("model_path", "%.200q is no tinker://MODEL/sampler_weights/NAME", path)
	}
	p.By = by
	return &p, nil
}

func (s *Server) createSampler(r request) (any, error) {
	var q samplerRequest
	if err := body.Decode(r.body, &q); err != nil {
		return nil, err
	}
	if err := s.clients.Touch(q.Session, r.by.Token); err != nil {
		return nil, err
	}
	path, err := s.weights(q.Base, q.Path, r.by.Token)
	if err != nil {
		return nil, err
	}
	name := ""
	if path != nil {
		name = path.String()
	}
	id := s.clients.Sample(r.by.Token, name)
	return map[string]any{"type": "create_sampling_session", "sampling_session_id": id}, nil
}

func (s *Server) describeSampler(r request) (any, error) {
	path, err := s.clients.Sampler(r.rest, r.by.Token)
	if err != nil {
		return nil, err
	}
	answer := map[string]any{"sampler_id": r.rest, "base_model": s.base.Name, "model_path": nil}
	if path != "" {
		answer["model_path"] = path
	}
	return answer, nil
}

// asample continues a prompt, and promises the result.
func (s *Server) asample(r request) (any, error) {
	f, err := continued(s, r)
	if err != nil {
		return nil, err
	}
	return promise(f.ID, ""), nil
}

// sample continues a prompt while the client waits.
func (s *Server) sample(r request) (any, error) {
	f, err := continued(s, r)
	if err != nil {
		return nil, err
	}
	select {
	case <-f.Done:
	case <-r.ctx.Done():
		return nil, r.ctx.Err()
	}
	if f.Err != nil {
		return nil, f.Err
	}
	return f.Result, nil
}

// continued puts the continuation of a prompt into the queue.
func continued(s *Server, r request) (*work.Future, error) {
	var q sampleRequest
	if err := body.Decode(r.body, &q); err != nil {
		return nil, err
	}
	if q.Sampler != "" {
		var err error
		if q.Path, err = s.clients.Sampler(q.Sampler, r.by.Token); err != nil {
			return nil, err
		}
		if q.Base = ""; q.Path == "" {
			q.Base = s.base.Name
		}
	}
	from, err := s.weights(q.Base, q.Path, r.by.Token)
	if err != nil {
		return nil, err
	}
	wanted, err := q.sample(s.base, clients.NewSeed())
	if err != nil {
		return nil, err
	}
	do := func() (any, error) {
		got, err := s.engine.Sample(from, wanted)
		if err != nil {
			return nil, err
		}
		return got.answer(wanted), nil
	}
	p := work.Piece{ID: clients.NewID("request"), Owner: r.by.Token, Bytes: len(r.body), Do: do}
	if from != nil { // a request before this one may save the weights
		p.Lines = s.clients.Own(from.Model, from.By)
	}
	return s.queue.Add(p)
}

// answer is a result as JSON.
func (g *Sampled) answer(wanted Sample) any {
	sequences := make([]map[string]any, len(g.Sequences))
	for i, q := range g.Sequences {
		reason := "length"
		if q.Stopped {
			reason = "stop"
		}
		sequences[i] = map[string]any{"stop_reason": reason, "tokens": q.Tokens, "logprobs": q.LogProbs}
	}
	answer := map[string]any{"type": "sample", "sequences": sequences}
	if wanted.PromptLogs {
		logs := []any{nil} // nothing comes before the first token
		for _, x := range g.PromptLogs {
			logs = append(logs, x)
		}
		answer["prompt_logprobs"] = logs
	}
	return answer
}
