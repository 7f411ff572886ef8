package rpc

import (
	"encoding/json"
	"fmt"
	"net/http"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/starling-network/starling/web/request"
	"github.com/starling-network/starling/web/route"
	"github.com/starling-network/starling/web/stream"
)

// Method is a method of a service, with the route that answers it.
type Method struct {
	Name    string // /starling.v1.JobService/GetJob
	Route   route.Route
	In, Out protoreflect.MessageType
	Body    bool            // fields that are neither in the path nor in headers are in the body of the request
	InPath  map[string]bool // names of the fields that are in the path
}

// fieldsInHeaders are fields of requests that the routes take as headers.
var fieldsInHeaders = map[string]string{"idempotency_key": request.KeyHeader, "last_event_id": stream.LastEvent}

// methodOf finds the route of a method. A method without one is a mistake of this program.
func methodOf(d protoreflect.MethodDescriptor, routes []route.Route) *Method {
	rule := proto.GetExtension(d.Options(), annotations.E_Http).(*annotations.HttpRule)
	verb, address := http.MethodGet, rule.GetGet()
	if rule.GetPost() != "" {
		verb, address = http.MethodPost, rule.GetPost()
	}
	m := &Method{Name: fmt.Sprintf("/%s/%s", d.Parent().FullName(), d.Name()), Body: rule.GetBody() == "*",
		InPath: map[string]bool{}}
	for _, r := range routes {
		if r.Method == verb && r.Path == address {
			m.Route = r
		}
	}
	for _, name := range m.Route.PathParams() {
		m.InPath[name] = true
	}
	var err, wrong error
	m.In, err = protoregistry.GlobalTypes.FindMessageByName(d.Input().FullName())
	m.Out, wrong = protoregistry.GlobalTypes.FindMessageByName(d.Output().FullName())
	if (m.Route.Handle == nil) == (m.Route.Events == nil) || err != nil || wrong != nil {
		panic("rpc: nothing answers " + m.Name)
	}
	return m
}

// MethodsOf are the methods of a service. It panics if one has no route.
func MethodsOf(service protoreflect.ServiceDescriptor, routes []route.Route) (all []*Method) {
	for i := range service.Methods().Len() {
		all = append(all, methodOf(service.Methods().Get(i), routes))
	}
	return all
}

// encode is an answer as the message of a method.
func (m *Method) encode(v any) (proto.Message, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return m.message(text)
}

func (m *Method) message(text []byte) (proto.Message, error) {
	out := m.Out.New().Interface()
	return out, protojson.Unmarshal(text, out)
}
