package endpoint

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	cmtjson "github.com/cometbft/cometbft/libs/json"
	"github.com/cometbft/cometbft/libs/log"
	"github.com/cometbft/cometbft/libs/service"
	rpchttp "github.com/cometbft/cometbft/rpc/client/http"
	ctypes "github.com/cometbft/cometbft/rpc/core/types"
	rpctypes "github.com/cometbft/cometbft/rpc/jsonrpc/types"
	"github.com/gorilla/websocket"
)

// Bounds of a stream of events.
const (
	streamTimeout = time.Minute // for the next event or ping: validators send a ping every 27 s
	maxEvent      = 64 << 20    // bytes: a block in JSON, with the results of its transactions
)

// silence is how long events may fail to come before a client asks for blocks.
const Silence = time.Second

// connection asks questions as package rpchttp does. Its events come over WebSockets of its own: those of rpchttp fall
// silent for good when they end with a reset, as they do for a client that did not read them for a while.
type connection struct {
	*rpchttp.HTTP
	service.BaseService
	failover *failover
	life     context.Context // until it is stopped
	stop     context.CancelFunc
	streams  sync.WaitGroup
}

func newConnection(f *failover) (*connection, error) {
	rpc, err := rpchttp.NewWithClient(f.places[0].String(), websocketPath, &http.Client{Transport: f})
	if err != nil {
		return nil, err
	}
	c := &connection{HTTP: rpc, failover: f}
	c.life, c.stop = context.WithCancel(context.Background())
	c.BaseService = *service.NewBaseService(nil, "connection", c)
	return c, nil
}

// SetLogger implements service.Service.
func (c *connection) SetLogger(l log.Logger) { c.BaseService.SetLogger(l) }

// OnStop implements service.Service. It returns when every stream has said that it ends, or soon: to a validator a
// stream that is just gone is a fault.
func (c *connection) OnStop() {
	c.stop()
	said := make(chan struct{})
	go func() {
		c.streams.Wait()
		close(said)
	}()
	select {
	case <-said:
	case <-time.After(time.Second):
	}
}

// Subscribe implements rpcclient.EventsClient. The events come from whichever validator answers, until the connection
// is stopped: a stream that ends is followed by another, and what happened between the two is not told.
func (c *connection) Subscribe(ctx context.Context, _, query string,
	capacity ...int) (<-chan ctypes.ResultEvent, error) {
	stream, err := c.failover.stream(ctx, query)
	if err != nil {
		return nil, err
	}
	size := 1
	if len(capacity) > 0 {
		size = capacity[0]
	}
	events := make(chan ctypes.ResultEvent, size)
	c.streams.Go(func() {
		for {
			if stream != nil {
				c.follow(stream, events)
			}
			select {
			case <-c.life.Done():
				return
			case <-time.After(Silence):
			}
			stream, _ = c.failover.stream(c.life, query) // nil if there is none, until it is silent again
		}
	})
	return events, nil
}

// Unsubscribe implements rpcclient.EventsClient: events end with the connection.
func (c *connection) Unsubscribe(context.Context, string, string) error { return nil }

// UnsubscribeAll implements rpcclient.EventsClient: events end with the connection.
func (c *connection) UnsubscribeAll(context.Context, string) error { return nil }

// follow passes events on until their stream or the connection ends.
func (c *connection) follow(stream *websocket.Conn, events chan<- ctypes.ResultEvent) {
	// The end of this call wakes a read that waits for a message. The end of a stream is reported once, and first.
	defer context.AfterFunc(c.life, func() { _ = stream.SetReadDeadline(time.Now()) })()
	defer func() {
		if c.life.Err() != nil {
			bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
			_ = stream.WriteControl(websocket.CloseMessage, bye, time.Now().Add(time.Second))
		}
		_ = stream.Close()
	}()
	for {
		var message rpctypes.RPCResponse
		if stream.SetReadDeadline(time.Now().Add(streamTimeout)) != nil || c.life.Err() != nil ||
			stream.ReadJSON(&message) != nil || message.Error != nil {
			return
		}
		var event ctypes.ResultEvent
		if cmtjson.Unmarshal(message.Result, &event) != nil {
			return
		}
		if event.Data == nil {
			continue // the answer to the question for events
		}
		select {
		case events <- event:
		case <-c.life.Done():
			return
		}
	}
}

// websocketPath is where a validator has its events.
const websocketPath = "/websocket"

// stream asks the place that answered last for events, or the next that has any.
func (f *failover) stream(ctx context.Context, query string) (stream *websocket.Conn, err error) {
	first := int(f.at.Load())
	for i := range f.places {
		if stream, err = f.streamOf(ctx, f.places[(first+i)%len(f.places)], query); err == nil {
			return stream, nil
		}
	}
	return nil, err
}

func (f *failover) streamOf(ctx context.Context, place *url.URL, query string) (*websocket.Conn, error) {
	question, err := rpctypes.MapToRequest(rpctypes.JSONRPCIntID(0), "subscribe", map[string]any{"query": query})
	if err != nil {
		return nil, err
	}
	u, request := *place, http.Request{Header: http.Header{}}
	u.Scheme, u.User = strings.Replace(u.Scheme, "http", "ws", 1), nil // and https becomes wss
	u.Path = strings.TrimSuffix(u.Path, "/") + websocketPath
	if place.User != nil {
		password, _ := place.User.Password()
		request.SetBasicAuth(place.User.Username(), password)
	}
	dialer := websocket.Dialer{NetDialContext: f.transport.DialContext, HandshakeTimeout: ReplyTimeout}
	stream, answer, err := dialer.DialContext(ctx, u.String(), request.Header)
	if err != nil {
		return nil, err
	}
	_ = answer.Body.Close()
	stream.SetReadLimit(maxEvent)
	pong := stream.PingHandler()
	stream.SetPingHandler(func(data string) error {
		_ = stream.SetReadDeadline(time.Now().Add(streamTimeout))
		return pong(data)
	})
	if err := stream.WriteJSON(question); err != nil {
		_ = stream.Close()
		return nil, err
	}
	return stream, nil
}
