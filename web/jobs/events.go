package jobs

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/network"
	"github.com/starling-network/starling/web/route"
	"github.com/starling-network/starling/web/stream"
)

func (a *API) eventRoutes() []route.Route {
	return []route.Route{
		{Method: "GET", Path: "/v1/jobs/{id}/events", Scope: access.Read,
			Summary: "Stream of the new records of a run; Last-Event-ID resumes it", Answer: api.Update{},
			Events: a.jobEvents},
		{Method: "GET", Path: "/v1/events", Scope: access.Read, Summary: "Stream of runs that change, and of the network",
			Events: a.allEvents},
	}
}

// jobEvents streams a run: first all its records, or, to a client that reconnects, the records since its last event;
// then the records that are added. A run that removed records is sent as a reset.
func (a *API) jobEvents(r *http.Request, open func() (stream.Sink, error)) error {
	id := r.PathValue("id")
	h, err := a.Runs.History(r.Context(), id)
	if err != nil {
		return err
	}
	at, event := end(h), "update"
	resumed, ok := parseCursor(r.Header.Get(stream.LastEvent))
	switch {
	case ok && resumed.holds(h):
		at = resumed
	case r.Header.Get(stream.LastEvent) != "":
		event = "reset"
	}
	version := func(ctx context.Context) (string, error) {
		h, err := a.Runs.History(ctx, id)
		if err != nil {
			return "", err
		}
		return strconv.FormatUint(h.Version, 10), nil
	}
	var sent uint64
	return a.Streams.Serve(r.Context(), open, "job "+id, version, func(to stream.Sink) error {
		h, err := a.Runs.History(r.Context(), id)
		if err != nil {
			return err
		}
		if sent == h.Version+1 {
			return nil
		}
		if !at.holds(h) {
			at, event = end(h), "reset"
		}
		u := since(at, h)
		at = end(h)
		sent = h.Version + 1
		name := event
		event = "update"
		return to.Send(at.String(), name, u)
	})
}

// allEvents streams the runs that change, as events job, and the network after its blocks, as events network.
func (a *API) allEvents(r *http.Request, open func() (stream.Sink, error)) error {
	had := map[string]string{}
	height := int64(-1)
	return a.Streams.Serve(r.Context(), open, "all", a.pulse, func(to stream.Sink) error {
		jobs, err := a.Runs.List(r.Context())
		if err != nil {
			return err
		}
		for _, j := range jobs {
			if v := pulseOf(j); had[j.ID] != v {
				had[j.ID] = v
				if err := to.Send("", "job", j); err != nil {
					return err
				}
			}
		}
		if a.Network == nil {
			return nil
		}
		n, err := network.Overview(r.Context(), a.Network)
		if err != nil || n.Height == height {
			return nil // the network is away for the moment; the page sees it in /v1/health
		}
		height = n.Height
		return to.Send("", "network", n)
	})
}

// pulse changes with any run, and with the network.
func (a *API) pulse(ctx context.Context) (string, error) {
	jobs, err := a.Runs.List(ctx)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, j := range jobs {
		b.WriteString(j.ID)
		b.WriteString(pulseOf(j))
	}
	if a.Network != nil {
		if n, err := network.Overview(ctx, a.Network); err == nil {
			fmt.Fprint(&b, n.Height)
		}
	}
	return b.String(), nil
}

func pulseOf(j api.Job) string {
	text := fmt.Sprint(" ", j.State, j.Phase, j.Step, j.Round, j.PaidUzen, j.Workers, j.Updated.UnixNano())
	for _, p := range j.Pushes {
		text += fmt.Sprint(" ", p.State, p.Sent)
	}
	return text + ";"
}
