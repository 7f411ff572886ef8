package lifetime

import "testing"

func TestWorkEndsWithTheLifetime(t *testing.T) {
	l := New()
	if !l.Begin() {
		t.Fatal("no work begins in a new lifetime")
	}
	l.End()
	if l.Begin() {
		t.Error("work began after the end")
	}
	if l.Context().Err() == nil {
		t.Error("the context outlives the lifetime")
	}
	waited := make(chan struct{})
	go func() {
		l.Wait()
		close(waited)
	}()
	select {
	case <-waited:
		t.Fatal("Wait returned while work was running")
	default:
	}
	l.Done()
	<-waited
}
