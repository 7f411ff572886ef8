// Package pin has the last checkpoint of a run kept by a pinning service of IPFS, over the Pinning Service API 1.0.
// The process serves the blobs of that checkpoint to the service for as long as it takes the service to fetch them:
// the hash table in which public IPFS nodes look for others does not have the members of a network.
package pin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/checkpoint"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/peer/admission"
	"github.com/starling-network/starling/node/push/parcel"
)

// every is the time between two questions to the service.
const every = 2 * time.Second

// Client asks one service.
type Client struct {
	base, token string
	http        *parcel.Client
	wait        func(time.Duration) <-chan time.Time
}

// FromEnvironment makes a client for the service that IPFS_PINNING_ENDPOINT names, with the token IPFS_PINNING_TOKEN.
func FromEnvironment() (*Client, error) {
	u, err := url.Parse(strings.TrimSuffix(os.Getenv("IPFS_PINNING_ENDPOINT"), "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, &parcel.Error{Code: parcel.BadTarget, What: "IPFS_PINNING_ENDPOINT is no address",
			Fix: "set it to the address of a pinning service, such as https://HOST/psa, without credentials"}
	}
	token := os.Getenv("IPFS_PINNING_TOKEN")
	if token == "" {
		return nil, &parcel.Error{Code: parcel.Credentials, What: "there is no token for " + u.Host,
			Fix: "set IPFS_PINNING_TOKEN to a token of the pinning service"}
	}
	return &Client{base: u.String(), token: token, http: parcel.NewClient(), wait: time.After}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.Close() }

// status is an answer about a pin.
type status struct {
	ID        string   `json:"requestid"`
	Status    string   `json:"status"` // queued, pinning, pinned or failed
	Delegates []string `json:"delegates"`
	Info      struct {
		Details string `json:"status_details"`
	} `json:"info"`
}

// Pin has the service keep a checkpoint whose blobs are in a folder, and returns when it does. Others reach this
// process at the addresses listened at. sent is called with the number of bytes that the service, or others, have
// fetched.
func (c *Client) Pin(ctx context.Context, folder, cid, name string, listen []string, sent func(n int64)) error {
	pinned, err := c.pinned(ctx, cid)
	if err != nil || pinned {
		return err
	}
	host, err := serve(ctx, folder, cid, listen)
	if err != nil {
		return err
	}
	defer host.Close()
	s, err := c.ask(ctx, http.MethodPost, "/pins", map[string]any{"cid": cid, "name": name, "origins": host.Addrs()})
	for ; err == nil; s, err = c.ask(ctx, http.MethodGet, "/pins/"+url.PathEscape(s.ID), nil) {
		for _, at := range s.Delegates {
			_ = host.Connect(ctx, at) // it may be out of reach: the service dials this process, too
		}
		moved, _ := host.Traffic()
		sent(int64(moved))
		switch {
		case s.Status == "pinned":
			return nil
		case s.Status == "failed":
			return &parcel.Error{Code: parcel.Unreachable, What: "the pinning service could not fetch the checkpoint",
				Err: errors.New(s.Info.Details), Fix: "let it reach this process: listen at an address that it can dial"}
		case s.ID == "" || s.Status != "queued" && s.Status != "pinning":
			return c.malformed()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.wait(every):
		}
	}
	return err
}

// serve makes a host that serves the blobs of a checkpoint, and no others of the folder, to everybody.
func serve(ctx context.Context, folder, cid string, listen []string) (*peer.Host, error) {
	store, err := blob.OpenDisk(folder)
	if err != nil {
		return nil, parcel.OnDisk(err)
	}
	id, err := blob.Parse(cid)
	if err != nil {
		return nil, parcel.OnDisk(err)
	}
	list, err := checkpoint.Blobs(ctx, store.Get, id)
	if err != nil {
		return nil, parcel.OnDisk(fmt.Errorf("the checkpoint is not in %s: %w", folder, err))
	}
	of := map[blob.CID]bool{}
	for _, b := range list {
		of[b] = true
	}
	key, err := peer.GenerateKey()
	if err != nil {
		return nil, err
	}
	return peer.New(peer.Config{Key: key, Store: store, Listen: listen,
		Serve: func(_ admission.Standing, b blob.CID) bool { return of[b] }})
}

// pinned reports whether the service keeps a checkpoint already.
func (c *Client) pinned(ctx context.Context, cid string) (bool, error) {
	a, err := c.send(ctx, http.MethodGet, "/pins?status=pinned&cid="+url.QueryEscape(cid), nil)
	if err != nil {
		return false, err
	}
	var list struct {
		Count int `json:"count"`
	}
	if json.Unmarshal(a.Body, &list) != nil {
		return false, c.malformed()
	}
	return list.Count > 0, nil
}

func (c *Client) ask(ctx context.Context, method, path string, in any) (s status, _ error) {
	a, err := c.send(ctx, method, path, in)
	if err == nil && json.Unmarshal(a.Body, &s) != nil {
		err = c.malformed()
	}
	return s, err
}

func (c *Client) send(ctx context.Context, method, path string, in any) (*parcel.Answer, error) {
	r, err := http.NewRequest(method, c.base+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("User-Agent", "starling")
	var a *parcel.Answer
	if in == nil {
		a, err = c.http.Do(ctx, r, nil, 0, nil)
	} else {
		body, failed := json.Marshal(in)
		if failed != nil {
			return nil, failed
		}
		r.Header.Set("Content-Type", "application/json")
		a, err = c.http.Do(ctx, r, bytes.NewReader(body), int64(len(body)), nil)
	}
	switch {
	case err != nil:
		return nil, err
	case a.Busy():
		return nil, parcel.Overloaded(r.URL.Host, a)
	case !a.OK():
		return nil, refusal(r.URL.Host, a)
	}
	return a, nil
}

func (c *Client) malformed() error {
	return &parcel.Error{Code: parcel.Refused, What: "the answer of " + c.base + " is not one of a pinning service",
		Fix: "check IPFS_PINNING_ENDPOINT"}
}

// refusal says why the service refuses.
func refusal(host string, a *parcel.Answer) error {
	e := parcel.Refusal(host, a)
	var no struct {
		Error struct{ Reason, Details string }
	}
	if json.Unmarshal(a.Body, &no) == nil && no.Error.Reason != "" {
		e.Err = errors.New(strings.TrimSpace(no.Error.Reason + " " + no.Error.Details))
	}
	switch a.Status {
	case http.StatusUnauthorized:
		e.Code, e.What, e.Fix = parcel.Credentials, host+" does not accept the token",
			"set IPFS_PINNING_TOKEN to a token of the pinning service"
	case http.StatusForbidden:
		e.Code, e.What, e.Fix = parcel.Denied, "the token may not pin at "+host, "use a token with the right to add pins"
	case http.StatusNotFound:
		e.Code, e.What, e.Fix = parcel.NotFound, host+" has no pinning service there", "check IPFS_PINNING_ENDPOINT"
	}
	return e
}
