package rpc

import (
	"context"
	"errors"
	"net/http"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/starling-network/starling/web/failure"
)

// errorDomain is that of the codes of the API, in details of a status.
const errorDomain = "starling"

// codeOf is the code of gRPC for a status of HTTP.
var codeOf = map[int]codes.Code{
	http.StatusBadRequest:            codes.InvalidArgument,
	http.StatusUnauthorized:          codes.Unauthenticated,
	http.StatusPaymentRequired:       codes.FailedPrecondition,
	http.StatusForbidden:             codes.PermissionDenied,
	http.StatusNotFound:              codes.NotFound,
	http.StatusRequestTimeout:        codes.DeadlineExceeded,
	http.StatusConflict:              codes.FailedPrecondition,
	http.StatusRequestEntityTooLarge: codes.ResourceExhausted,
	http.StatusMisdirectedRequest:    codes.PermissionDenied,
	http.StatusUnprocessableEntity:   codes.InvalidArgument,
	http.StatusTooManyRequests:       codes.ResourceExhausted,
	statusGone:                       codes.Canceled,
	http.StatusNotImplemented:        codes.Unimplemented,
	http.StatusServiceUnavailable:    codes.Unavailable,
	http.StatusGatewayTimeout:        codes.DeadlineExceeded,
}

// statusGone stands among the statuses of HTTP for a caller that went before the answer came.
const statusGone = 499

// failureOf is what is answered for the error of a call.
func failureOf(err error) *failure.Error {
	if errors.Is(err, context.Canceled) {
		return failure.New(statusGone, "CANCELED", "the caller went away", "")
	}
	if s, ok := status.FromError(err); ok { // of gRPC itself: the message is none
		return failure.New(http.StatusBadRequest, "BODY_INVALID", s.Message(),
			"see the .proto files, or ask the server by reflection")
	}
	return failure.Of(err)
}

// statusOf is a failure as a status: its code and its fix are in an ErrorInfo, the identifier of the request in a
// RequestInfo, places in a job file in a BadRequest, and when to try again in a RetryInfo.
func statusOf(f *failure.Error, id string) error {
	code, ok := codeOf[f.Status]
	if !ok {
		code = codes.Internal
	}
	info := &errdetails.ErrorInfo{Reason: f.Code, Domain: errorDomain, Metadata: map[string]string{}}
	if f.Fix != "" {
		info.Metadata["fix"] = f.Fix
	}
	details := []protoadapt.MessageV1{info, &errdetails.RequestInfo{RequestId: id}}
	if f.Retry > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(f.Retry)})
	}
	if len(f.Problems) > 0 {
		bad := &errdetails.BadRequest{}
		for _, p := range f.Problems {
			text := p.What
			for _, more := range []string{p.Why, p.Fix} {
				if more != "" {
					text += ": " + more
				}
			}
			bad.FieldViolations = append(bad.FieldViolations,
				&errdetails.BadRequest_FieldViolation{Field: p.Place, Description: text, Reason: p.Code})
		}
		details = append(details, bad)
	}
	s := status.New(code, f.Detail)
	if full, err := s.WithDetails(details...); err == nil {
		s = full
	}
	return s.Err()
}
