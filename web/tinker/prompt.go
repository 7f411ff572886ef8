package tinker

import "encoding/json"

type samplerRequest struct {
	Session  string   `json:"session_id"`
	Sequence anything `json:"sampling_session_seq_id"`
	Base     string   `json:"base_model"`
	Path     string   `json:"model_path"`
	Type     anything `json:"type"`
}

type sampleRequest struct {
	Number     *int       `json:"num_samples"`
	Prompt     modelInput `json:"prompt"`
	Params     parameters `json:"sampling_params"`
	Base       string     `json:"base_model"`
	Path       string     `json:"model_path"`
	Sampler    string     `json:"sampling_session_id"`
	Sequence   *int64     `json:"seq_id"`
	PromptLogs *bool      `json:"prompt_logprobs"`
	Likely     int        `json:"topk_prompt_logprobs"`
	Stability  anything   `json:"record_stability_info"`
	Type       anything   `json:"type"`
}

type parameters struct {
	Tokens      *int            `json:"max_tokens"`
	Seed        *int64          `json:"seed"`
	Stop        json.RawMessage `json:"stop"`
	Temperature *float64        `json:"temperature"`
	TopK        *int            `json:"top_k"`
	TopP        *float64        `json:"top_p"`
}

// sample are the continuations that are asked for. Without a seed it is the one given.
func (r sampleRequest) sample(b Base, seed uint64) (s Sample, err error) {
	if s.Prompt, err = r.Prompt.tokens("prompt", b); err != nil {
		return s, err
	}
	or := func(x *float64, other float64) float64 {
		if x == nil {
			return other
		}
		return *x
	}
	s.Number, s.Seed, s.PromptLogs = 1, seed, r.PromptLogs != nil && *r.PromptLogs
	s.Temperature, s.TopP, s.Tokens = or(r.Params.Temperature, 1), or(r.Params.TopP, 1), b.Context-len(s.Prompt)
	if r.Number != nil {
		s.Number = *r.Number
	}
	if r.Params.Tokens != nil {
		s.Tokens = *r.Params.Tokens
	}
	if r.Params.Seed != nil {
		s.Seed = uint64(*r.Params.Seed)
	}
	if k := r.Params.TopK; k != nil && *k != -1 {
		if s.TopK = *k; s.TopK < 1 {
			return s, invalid("sampling_params.top_k", "%d is neither -1 nor above 0", s.TopK)
		}
	}
	switch {
	case r.Likely != 0:
		return s, invalid("topk_prompt_logprobs", "it is not supported; prompt_logprobs gives those of the prompt's tokens")
	case s.Number < 1 || s.Number > maxNumber:
		return s, invalid("num_samples", "%d is not from 1 to %d", s.Number, maxNumber)
	case s.Tokens < 1 || s.Tokens > b.Context-len(s.Prompt):
		return s, invalid("sampling_params.max_tokens", "%d after a prompt of %d; the model reads %d", s.Tokens,
			len(s.Prompt), b.Context)
	case s.Number*(s.Tokens+len(s.Prompt)) > maxTokens:
		return s, invalid("num_samples", "%d of %d tokens are more than %d", s.Number, s.Tokens+len(s.Prompt), maxTokens)
	case !(s.Temperature >= 0 && s.Temperature <= 100):
		return s, invalid("sampling_params.temperature", "%g is not from 0 to 100", s.Temperature)
	case !(s.TopP > 0 && s.TopP <= 1):
		return s, invalid("sampling_params.top_p", "%g is not above 0 and at most 1", s.TopP)
	}
	return s, r.Params.stops(&s, b)
}

// stops reads stop sequences: a text, texts or tokens.
func (p parameters) stops(s *Sample, b Base) error {
	var one string
	switch {
	case len(p.Stop) == 0 || string(p.Stop) == "null":
		return nil
	case json.Unmarshal(p.Stop, &one) == nil:
		s.StopTexts = []string{one}
	case json.Unmarshal(p.Stop, &s.StopTokens) == nil:
		s.StopTexts = nil
	default:
		s.StopTokens = nil
		if json.Unmarshal(p.Stop, &s.StopTexts) != nil {
			return invalid("sampling_params.stop", "it is neither a text, nor texts, nor tokens")
		}
	}
	if len(s.StopTexts)+len(s.StopTokens) > maxStops {
		return invalid("sampling_params.stop", "there are more than %d", maxStops)
	}
	for _, text := range s.StopTexts {
		if text == "" || len(text) > maxStopBytes {
			return invalid("sampling_params.stop", "a text of %d bytes; give 1 to %d", len(text), maxStopBytes)
		}
	}
	return inVocabulary("sampling_params.stop", s.StopTokens, b)
}
