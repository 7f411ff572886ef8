package tinker

import (
	"net/http"

	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/tinker/body"
	"github.com/starling-network/starling/web/tinker/clients"
	"github.com/starling-network/starling/web/tinker/journal"
	"github.com/starling-network/starling/web/tinker/work"
)

func healthz(request) (any, error) { return map[string]any{"status": "ok"}, nil }

func (s *Server) capabilities(request) (any, error) {
	return map[string]any{"supported_models": []any{map[string]any{"model_name": s.base.Name}},
		"supported_loss_fns": []string{CrossEntropy, ImportanceSampling, PPO}}, nil
}

// clientConfig tells the published client to send JSON that is not compressed, one part of a pass after the other.
func clientConfig(request) (any, error) {
	return map[string]any{"pjwt_auth_enabled": false, "parallel_fwdbwd_chunks": false, "proto_write_fwdbwd": false,
		"proto_compress_fwdbwd": false, "fwdbwd_max_chunk_len": 256, "fwdbwd_max_chunk_bytes_count": 4_000_000,
		"sample_use_retrieve_futures": false, "create_model_via_load_weights": false}, nil
}

// telemetry takes the events of a client, and drops them.
func telemetry(request) (any, error) { return map[string]any{"status": "accepted"}, nil }

func (s *Server) createSession(r request) (any, error) {
	var q sessionRequest
	if err := body.Decode(r.body, &q); err != nil {
		return nil, err
	}
	id, ended, err := s.clients.Begin(r.by.Token)
	release(s, ended)
	if err != nil {
		return nil, err
	}
	return map[string]any{"type": "create_session", "session_id": id,
		"info_message": s.config.Notice}, nil
}

func (s *Server) heartbeat(r request) (any, error) {
	var q sessionRequest
	if err := body.Decode(r.body, &q); err != nil {
		return nil, err
	}
	return map[string]any{"type": "session_heartbeat"}, s.clients.Touch(q.Session, r.by.Token)
}

func (s *Server) createModel(r request) (any, error) {
	var q createRequest
	if err := body.Decode(r.body, &q); err != nil {
		return nil, err
	}
	if q.Base != s.base.Name {
		return nil, failure.New(http.StatusNotFound, "BASE_UNKNOWN", "the server has no base model "+q.Base,
			"give the base model "+s.base.Name)
	}
	c, err := q.create()
	if err != nil {
		return nil, err
	}
	name, ended, err := s.clients.Create(q.Session, r.by.Token, c)
	release(s, ended)
	if err != nil {
		return nil, err
	}
	id := clients.NewID("request")
	// The log is there before the client knows the name of the model, and can send it requests.
	err = beginLog(s.logs, journal.Head{Model: name, Session: q.Session, Token: r.by.Token, Request: id}, c)
	if err == nil {
		_, err = s.queue.Add(work.Piece{ID: id, Owner: r.by.Token, Bytes: len(r.body), Lines: []string{name},
			Do: func() (any, error) {
				err := s.engine.Create(name, c)
				if err != nil && s.ctx.Err() == nil {
					s.forget(name)
				}
				return created(name), err
			}})
	}
	if err != nil {
		s.drop(name)
		return nil, err
	}
	return promise(id, name), nil
}

func created(model string) any { return map[string]any{"type": "create_model", "model_id": model} }

func (s *Server) info(r request) (any, error) {
	var q modelRequest
	if err := body.Decode(r.body, &q); err != nil {
		return nil, err
	}
	c, err := s.clients.Find(q.Model, r.by.Token)
	if err != nil {
		return nil, err
	}
	answer := map[string]any{"type": "get_info", "model_id": q.Model, "model_name": s.base.Name, "is_lora": c.Rank > 0,
		"model_data": map[string]any{"arch": s.base.Architecture, "model_name": s.base.Name,
			"tokenizer_id": s.base.Tokenizer}}
	if c.Rank > 0 {
		answer["lora_rank"] = c.Rank
	}
	return answer, nil
}

func (s *Server) unload(r request) (any, error) {
	var q modelRequest
	if err := body.Decode(r.body, &q); err != nil {
		return nil, err
	}
	if _, err := s.clients.Find(q.Model, r.by.Token); err != nil {
		return nil, err
	}
	id, err := s.add(r, []string{q.Model}, func(string) (any, error) {
		s.forget(q.Model)
		return map[string]any{"type": "unload_model", "model_id": q.Model}, nil
	})
	if err != nil {
		return nil, err
	}
	return promise(id, q.Model), nil
}

// pass is forward and forward_backward: which of them, the key of the input says.
func (s *Server) pass(r request) (job, error) {
	var q passRequest
	if err := body.Decode(r.body, &q); err != nil {
		return job{}, err
	}
	in := q.Backward
	if in == nil {
		in = q.Forward
	}
	if (q.Backward == nil) == (q.Forward == nil) {
		return job{}, invalid("forward_backward_input", "give it, or forward_input for a pass without gradients")
	}
	loss, err := in.loss()
	if err != nil {
		return job{}, err
	}
	data, err := in.data(loss, s.base)
	if err != nil {
		return job{}, err
	}
	name, backward := q.Model, q.Backward != nil // what waits does not hold the request
	return job{model: name, number: q.Sequence, do: func(string) (any, error) {
		if !backward {
			return passed(s.engine.Forward(name, data))
		}
		p, err := s.engine.Backward(name, data, loss)
		if err == nil && p.Later != nil {
			return work.Later(func() (any, error) { return passed(p.Later()) }), nil
		}
		return passed(p, err)
	}}, nil
}

// passed is the answer to a pass.
func passed(p *Pass, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	outputs, metrics := make([]map[string]any, len(p.LogProbs)), map[string]float64{}
	for i, logs := range p.LogProbs {
		outputs[i] = map[string]any{"logprobs": map[string]any{"data": logs, "dtype": "float32", "shape": []int{len(logs)}}}
	}
	if p.Backward {
		metrics["loss:sum"] = p.Loss
	}
	return map[string]any{"loss_fn_output_type": "ArrayRecord", "loss_fn_outputs": outputs, "metrics": metrics}, nil
}

func (s *Server) step(r request) (job, error) {
	var q stepRequest
	if err := body.Decode(r.body, &q); err != nil {
		return job{}, err
	}
	a, err := q.adam()
	if err != nil {
		return job{}, err
	}
	by, name := r.by, q.Model
	return job{model: name, number: q.Sequence, do: func(id string) (any, error) {
		take := func() (any, error) {
			metrics, err := s.engine.Step(name, Step{a, id, by})
			return map[string]any{"type": "optim_step", "metrics": metrics}, err
		}
		if _, waits := s.engine.(Lasting); waits {
			return work.Held(take), nil
		}
		return take()
	}}, nil
}

// save returns what reads requests to save weights of a kind.
func (s *Server) save(kind string) func(r request) (job, error) {
	return func(r request) (job, error) { return s.saved(r, kind) }
}

func (s *Server) saved(r request, kind string) (job, error) {
	var q weightsRequest
	if err := body.Decode(r.body, &q); err != nil {
		return job{}, err
	}
	p, lasting := Path{q.Model, kind, q.Path, r.by.Token}, true
	if q.Path == "" && kind == Sampling && q.Sampler != nil {
		p.Name, lasting = clients.NewID("kept"), false
	}
	if !validName(p.Name) {
		return job{}, invalid("path", "%.80q is no name of letters, digits, dashes, underscores and dots", q.Path)
	}
	if _, err := s.clients.Find(q.Model, r.by.Token); err != nil {
		return job{}, err
	}
	return job{model: q.Model, number: q.Sequence, do: func(string) (any, error) {
		if _, err := s.engine.Saved(p); lasting && err == nil && !q.Overwrite {
			return nil, failure.New(http.StatusConflict, "WEIGHTS_EXIST", "there are weights at "+p.String()+" already",
				"give another name, or overwrite")
		}
		if err := s.engine.Save(q.Model, p, lasting); err != nil {
			return nil, err
		}
		answer := map[string]any{"type": "save_weights", "path": p.String()}
		if kind == Sampling {
			answer["type"] = "save_weights_for_sampler"
			if q.Sampler != nil {
				answer["sampling_session_id"] = s.clients.Sample(r.by.Token, p.String())
			}
		}
		return answer, nil
	}}, nil
}

func (s *Server) load(r request) (job, error) {
	var q weightsRequest
	if err := body.Decode(r.body, &q); err != nil {
		return job{}, err
	}
	p, ok := ParsePath(q.Path)
	if !ok || p.Kind != Training {
		return job{}, invalid("path", "%.200q is no tinker://MODEL/weights/NAME", q.Path)
	}
	p.By = r.by.Token
	return job{model: q.Model, number: q.Sequence, from: s.clients.Own(p.Model, p.By), do: func(string) (any, error) {
		err := s.engine.Load(q.Model, p, q.Optimizer)
		return map[string]any{"type": "load_weights", "path": p.String()}, err
	}}, nil
}

func (s *Server) weightsInfo(r request) (any, error) {
	var q pathRequest
	if err := body.Decode(r.body, &q); err != nil {
		return nil, err
	}
	p, ok := ParsePath(q.Path)
	if !ok {
		return nil, invalid("tinker_path", "%.200q is no tinker://MODEL/weights/NAME", q.Path)
	}
	p.By = r.by.Token
	c, err := s.engine.Saved(p)
	if err != nil {
		return nil, err
	}
	answer := map[string]any{"base_model": s.base.Name, "is_lora": c.Rank > 0}
	if c.Rank > 0 {
		answer["lora_rank"], answer["train_attn"] = c.Rank, c.Attention
		answer["train_mlp"], answer["train_unembed"] = c.Feed, c.Unembeds
	}
	return answer, nil
}
