package clients

import (
	"testing"
	"time"
)

// TestSilentSessions: a server that is full ends sessions that are silent, and their models.
func TestSilentSessions(t *testing.T) {
	now := time.Unix(0, 0)
	s := New[int](1, 1, func() time.Time { return now })
	first, _, err := s.Begin("a")
	if err != nil {
		t.Fatal(err)
	}
	model, _, err := s.Create(first, "a", 0)
	if err != nil {
		t.Fatal(err)
	}
	second, _, err := s.Begin("a")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Create(second, "a", 0); err == nil {
		t.Error("a second model at a server of one")
	}
	now = now.Add(idleAfter)
	if err := s.Touch(second, "a"); err != nil {
		t.Error(err)
	}
	if _, ended, err := s.Create(second, "a", 0); err != nil || len(ended) != 1 || ended[0] != model {
		t.Errorf("ended %v, %v", ended, err)
	}
	if s.Touch(first, "a") == nil {
		t.Error("a session that was ended continues")
	}
	for range maxSessions - 1 {
		_, _, err = s.Begin("a")
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.Begin("a"); err == nil {
		t.Error("more sessions than there may be")
	}
}

// TestTokensApart: a token sees neither the sessions nor the models of another.
func TestTokensApart(t *testing.T) {
	s := New[int](1, 1, time.Now)
	session, _, err := s.Begin("a")
	if err != nil {
		t.Fatal(err)
	}
	model, _, err := s.Create(session, "a", 7)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := s.Find(model, "a"); err != nil || c != 7 {
		t.Errorf("%d, %v", c, err)
	}
	_, found := s.Find(model, "b")
	_, once := s.Once(model, "b", nil, nil, func() (string, error) { return "", nil })
	if found == nil || once == nil || s.Touch(session, "b") == nil {
		t.Errorf("another token finds the model: %v, %v", found, once)
	}
}

// TestShares: a token takes no place of another, and ends no session of another while it has its own share.
func TestShares(t *testing.T) {
	now := time.Unix(0, 0)
	s := New[int](4, 2, func() time.Time { return now })
	sessions := map[string]string{}
	for _, token := range []string{"a", "b"} {
		id, _, err := s.Begin(token)
		if err != nil {
			t.Fatal(err)
		}
		sessions[token] = id
	}
	mine, _, err := s.Create(sessions["b"], "b", 0)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(idleAfter)
	for i := range 4 {
		_, ended, err := s.Create(sessions["a"], "a", 0)
		if (err == nil) != (i < 2) || len(ended) > 0 {
			t.Errorf("model %d: %v, ended %v", i, err, ended)
		}
	}
	for range maxSessions {
		if _, ended, _ := s.Begin("a"); len(ended) > 0 {
			t.Errorf("a new session ends %v", ended)
		}
	}
	if _, err := s.Find(mine, "b"); err != nil {
		t.Error(err)
	}
	if _, _, err := s.Create(sessions["b"], "b", 0); err != nil {
		t.Error(err)
	}
	path := s.Sample("b", "tinker://m/weights/w")
	for range maxSamplers {
		s.Sample("a", "")
	}
	if _, err := s.Sampler(path, "a"); err == nil {
		t.Error("a sampling session is seen by another token")
	}
	if got, err := s.Sampler(path, "b"); err != nil || got == "" {
		t.Errorf("%q, %v", got, err)
	}
}
