package pause

import (
	"sync"
	"time"
)

// lookEvery is how often Watch looks at the machine.
const lookEvery = time.Second

// Watch looks at a machine (nil: at the clock alone) until the returned function is called. changed gets every state
// that is another than the one before, the first if it is a pause; failed gets errors of Look.
func (p *Pauser) Watch(m Machine, changed func(State), failed func(error)) (stop func() error) {
	end := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		every := time.NewTicker(lookEvery)
		defer every.Stop()
		for said := (State{}); ; {
			if err := p.Look(m); err != nil {
				failed(err)
			}
			now, turned := p.State()
			if now != said {
				changed(now)
				said = now
			}
			select {
			case <-every.C:
			case <-turned:
			case <-end:
				return
			}
		}
	})
	return func() error {
		close(end)
		watching.Wait()
		return nil
	}
}
