package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/starling-network/starling/client/api"
)

func of(job string, rest ...string) string {
	path := "/v1/jobs/" + url.PathEscape(job)
	for _, r := range rest {
		path += "/" + r
	}
	return path
}

// Jobs are the runs of the server, the latest first, in a state and of a kind if these are not "".
func (c *Client) Jobs(ctx context.Context, state, kind string) ([]api.Job, error) {
	q := url.Values{}
	for name, value := range map[string]string{"state": state, "kind": kind} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return list(ctx, c, "/v1/jobs", q, func(l api.JobList) ([]api.Job, bool, string) { return l.Jobs, l.HasMore, l.After })
}

// Job is a run and its totals so far.
func (c *Client) Job(ctx context.Context, id string) (api.Job, error) {
	return get[api.Job](ctx, c, of(id))
}

// Find returns the run with this identifier, name, or identifier of its work; or the only one of which an identifier
// begins with the text.
func (c *Client) Find(ctx context.Context, text string) (api.Job, error) {
	if text == "" {
		return api.Job{}, &Error{Status: http.StatusNotFound, Code: "JOB_NOT_FOUND", What: "no job is named",
			Fix: "starling job list lists them"}
	}
	j, err := c.Job(ctx, text)
	if e, ok := errors.AsType[*Error](err); !ok || e.Status != http.StatusNotFound {
		return j, err
	}
	all, err := c.Jobs(ctx, "", "")
	if err != nil {
		return j, err
	}
	var found, begun []string
	for _, j := range all {
		switch {
		case j.Name == text || j.Job == text:
			found = append(found, j.ID)
		case strings.HasPrefix(j.ID, text) || strings.HasPrefix(j.Job, text):
			begun = append(begun, j.ID)
		}
	}
	if len(found) == 0 {
		found = begun
	}
	switch len(found) {
	case 1:
		return c.Job(ctx, found[0])
	case 0:
		return j, &Error{Status: http.StatusNotFound, Code: "JOB_NOT_FOUND", What: fmt.Sprintf("there is no job %q", text),
			Why: fmt.Sprintf("%d jobs are known here", len(all)), Fix: "starling job list says which, and where it looks"}
	}
	return j, &Error{Status: http.StatusConflict, Code: "JOB_AMBIGUOUS",
		What: fmt.Sprintf("%q may be several jobs", text),
		Why:  "there are " + strings.Join(found[:min(len(found), 5)], ", "), Fix: "give more of the identifier"}
}

// Metrics are series of a run, all or those with the names, each of at most so many points.
func (c *Client) Metrics(ctx context.Context, id string, names []string, points int) (api.Metrics, error) {
	q := url.Values{"points": {strconv.Itoa(points)}}
	if len(names) > 0 {
		q.Set("series", strings.Join(names, ","))
	}
	return get[api.Metrics](ctx, c, of(id, "metrics?"+q.Encode()))
}

// MetricsCSV copies every record of a run's metrics, as comma-separated values.
func (c *Client) MetricsCSV(ctx context.Context, id string, to io.Writer) error {
	return c.copy(ctx, of(id, "metrics.csv"), to)
}

// Lineage are the attested checkpoints of a run.
func (c *Client) Lineage(ctx context.Context, id string) ([]api.Checkpoint, error) {
	return list(ctx, c, of(id, "lineage"), nil,
		func(l api.Lineage) ([]api.Checkpoint, bool, string) { return l.Checkpoints, l.HasMore, l.After })
}

// Receipts are those of a run about an account, named by the beginning of its address, of a kind, and of zero; or all.
func (c *Client) Receipts(ctx context.Context, id, who, kind string, zero bool) ([]api.Receipt, error) {
	q := url.Values{"zero": {strconv.FormatBool(zero)}, "who": {who}, "kind": {kind}}
	return list(ctx, c, of(id, "receipts"), q,
		func(l api.Receipts) ([]api.Receipt, bool, string) { return l.Receipts, l.HasMore, l.After })
}

// Disputes are those of a run, move by move.
func (c *Client) Disputes(ctx context.Context, id string) ([]api.Dispute, error) {
	d, err := get[api.Disputes](ctx, c, of(id, "disputes"))
	return d.Disputes, err
}

// Members are the accounts that took part in a run.
func (c *Client) Members(ctx context.Context, id string) (api.Members, error) {
	return get[api.Members](ctx, c, of(id, "workers"))
}

// Cost is the cost of a run so far.
func (c *Client) Cost(ctx context.Context, id string) (api.Cost, error) {
	return get[api.Cost](ctx, c, of(id, "cost"))
}

// Log is a part of a run's log: whole lines, from an offset in bytes, or counted from the end if that is negative.
func (c *Client) Log(ctx context.Context, id string, from int64) (api.Log, error) {
	return get[api.Log](ctx, c, of(id, fmt.Sprintf("logs?from=%d&limit=%d", from, logPart)))
}

const logPart = 256 << 10

// Files of a run.
func (c *Client) Files(ctx context.Context, id string) ([]api.File, error) {
	f, err := get[api.Files](ctx, c, of(id, "files"))
	return f.Files, err
}

// Download copies a file of a run.
func (c *Client) Download(ctx context.Context, id, name string, to io.Writer) error {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return c.copy(ctx, of(id, "files", strings.Join(parts, "/")), to)
}

func (c *Client) copy(ctx context.Context, path string, to io.Writer) error {
	answer, err := c.do(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, answer.Body)
	return errors.Join(err, answer.Body.Close())
}

// Plan returns the plan of a job: its shape and cost.
func (c *Client) Plan(ctx context.Context, s api.Spec) (api.Plan, error) {
	return ask[api.Plan](ctx, c, http.MethodPost, "/v1/plans", s, nil)
}

// Submit has the server train a job. The same key, if it is not "", gives the same job.
func (c *Client) Submit(ctx context.Context, s api.Submission, key string) (api.Job, error) {
	header := http.Header{}
	if key != "" {
		header.Set("Idempotency-Key", key)
	}
	return ask[api.Job](ctx, c, http.MethodPost, "/v1/jobs", s, header)
}

// Cancel stops a job that was submitted to the server.
func (c *Client) Cancel(ctx context.Context, id string) (api.Job, error) {
	return ask[api.Job](ctx, c, http.MethodPost, of(id, "cancel"), struct{}{}, nil)
}

// Models are those that the finished runs left.
func (c *Client) Models(ctx context.Context) ([]api.Model, error) {
	m, err := get[api.Models](ctx, c, "/v1/trained-models")
	return m.Models, err
}
