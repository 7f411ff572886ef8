// Package strategy holds how an answer is found by more than one text of a model: the key "starling" of a request,
// which OpenAI's interface does not have, and the trace of the answer. It finds none: node/reasoning does.
package strategy

import (
	"fmt"
	"slices"
)

// Options say how an answer is found. Their zero value is one text without tools.
type Options struct {
	Answers int      `json:"answers"` // of each model, of which a vote chooses one
	Models  []string `json:"models"`  // that answer; none: the model of the request
	Vote    string   `json:"vote"`    // VoteText, VoteLine or VoteNumber: the part of an answer that is compared
	Search  *Search  `json:"search"`
	Tools   []string `json:"tools"` // of the server, which the model may call
	// tokens that all texts of a choice may have, with those that are not shown
	Budget int `json:"max_total_tokens"`
}

// Search writes an answer step by step and continues the most likely beginnings.
type Search struct {
	Beams     int    `json:"beams"`     // beginnings that are continued
	Branches  int    `json:"branches"`  // steps that are tried after each
	Steps     int    `json:"steps"`     // of an answer, at most
	Separator string `json:"separator"` // that ends a step
}

// Parts of an answer that are compared in a vote.
const (
	VoteText   = "text"   // all of it, without white space around it
	VoteLine   = "line"   // the last line that is not empty
	VoteNumber = "number" // the last number
)

// Trace tells how an answer was found.
type Trace struct {
	Votes []Vote `json:"votes,omitempty"` // most first
	Calls []Call `json:"calls,omitempty"` // of the text that is the answer
	Texts int    `json:"texts"`           // that were written
	// stages of a model in stages that texts were continued without, ascending: the answer is not of the whole model
	Left []int `json:"left_stages,omitempty"`
}

// Vote is an answer, and how many texts end with it.
type Vote struct {
	Answer string `json:"answer"`
	Count  int    `json:"count"`
}

// Call is a call of a tool.
type Call struct {
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"` // JSON
	Result    string `json:"result"`
}

// Limits of a strategy.
const (
	maxAnswers    = 64
	maxModels     = 8
	maxBeams      = 16
	maxSteps      = 64
	maxSeparator  = 16 // bytes
	maxTools      = 16
	maxBudget     = 1 << 16
	defaultBudget = 4096
)

// Error is a value that is out of bounds.
type Error struct{ Key, Message string }

func (e *Error) Error() string { return e.Message }

// Check refuses a value that is out of bounds, by an *Error, and sets defaults.
func (s *Options) Check() error {
	var err error
	bound := func(key string, n *int, most, fallback int) {
		if *n == 0 {
			*n = fallback
		}
		if (*n < 1 || *n > most) && err == nil {
			err = &Error{key, fmt.Sprintf("%s is %d, it must be in 1..%d.", key, *n, most)}
		}
	}
	bound("answers", &s.Answers, maxAnswers, 1)
	bound("max_total_tokens", &s.Budget, maxBudget, defaultBudget)
	if s.Search != nil {
		bound("search.beams", &s.Search.Beams, maxBeams, 4)
		bound("search.branches", &s.Search.Branches, maxBeams, 4)
		bound("search.steps", &s.Search.Steps, maxSteps, 16)
	}
	switch {
	case err != nil:
		return err
	case s.Search != nil && (s.Answers > 1 || len(s.Models) > 0):
		return &Error{"search", "A search has one model and one answer: leave answers and models out."}
	case s.Search != nil && len(s.Search.Separator) > maxSeparator:
		return &Error{"search.separator",
			fmt.Sprintf("The separator has %d bytes, at most %d.", len(s.Search.Separator), maxSeparator)}
	case len(s.Models) > maxModels:
		return &Error{"models", fmt.Sprintf("There are %d models, at most %d.", len(s.Models), maxModels)}
	case len(s.Tools) > maxTools:
		return &Error{"tools", fmt.Sprintf("There are %d tools, at most %d.", len(s.Tools), maxTools)}
	case !slices.Contains([]string{"", VoteText, VoteLine, VoteNumber}, s.Vote):
		return &Error{"vote", fmt.Sprintf("vote is %.40q, it is text, line or number.", s.Vote)}
	}
	if s.Vote == "" {
		s.Vote = VoteLine
	}
	if s.Search != nil && s.Search.Separator == "" {
		s.Search.Separator = "\n"
	}
	return nil
}
