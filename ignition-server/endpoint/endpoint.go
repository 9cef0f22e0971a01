// Package endpoint is the HTTP face of the ignition-server: GET /ignition with a bearer token.
package endpoint

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/openshift/hypershift/ignition-server/token"
)

// markTimeout bounds the writes to the management cluster that follow a served request.
const markTimeout = 10 * time.Second

var ignitionPath = regexp.MustCompile(`^/ignition[^/\s]*$`)

// Tokens tells what a token stands for.
type Tokens interface {
	Get(token string) (token.Entry, bool)
}

// Observer is told about requests.
type Observer interface {
	// Served is called after a machine got its configuration.
	Served(ctx context.Context, e token.Entry) error
	// Missed is called when a token is not known.
	Missed()
}

// New makes the handler.
func New(tokens Tokens, observer Observer, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/healthz":
			w.WriteHeader(http.StatusOK)
		case ignitionPath.MatchString(r.URL.Path):
			(&handler{tokens: tokens, observer: observer, log: log}).serve(w, r)
		default:
			http.NotFound(w, r)
		}
	})
}

type handler struct {
	tokens   Tokens
	observer Observer
	log      *slog.Logger
}

func (h *handler) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "only GET is served here", http.StatusMethodNotAllowed)
		return
	}
	bearer, ok := bearerToken(r.Header.Get("Authorization"))
	if !ok {
		http.Error(w, "send the token of the user-data as \"Authorization: Bearer <base64>\"", http.StatusUnauthorized)
		return
	}
	entry, ok := h.tokens.Get(bearer)
	if !ok {
		// Ignition gives up on 4xx and tries again on 5xx: the token may be in the cache in a moment.
		h.observer.Missed()
		http.Error(w, "no node configuration is held for this token (yet)", http.StatusNetworkAuthenticationRequired)
		return
	}
	if !json.Valid(entry.Payload) {
		http.Error(w, "the node configuration of this token is damaged", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(entry.Payload)))
	if _, err := w.Write(entry.Payload); err != nil {
		h.log.Info("a machine hung up", "nodePool", entry.NodePool, "error", err)
		return
	}
	// The machine must not wait for what follows; a writer that cannot flush sends all when the handler returns.
	_ = http.NewResponseController(w).Flush()
	h.served(r.Context(), entry)
}

func (h *handler) served(ctx context.Context, entry token.Entry) {
	// The machine may hang up as soon as it has its configuration, which must not keep it from being marked.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), markTimeout)
	defer cancel()
	h.log.Info("served a node configuration", "nodePool", entry.NodePool, "secret", entry.Secret.Name)
	if err := h.observer.Served(ctx, entry); err != nil {
		h.log.Error("cannot mark the token as used", "secret", entry.Secret.Name, "error", err)
	}
}

func bearerToken(header string) (string, bool) {
	encoded, ok := strings.CutPrefix(header, "Bearer ")
	if !ok {
		return "", false
	}
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	return string(decoded), err == nil && len(decoded) > 0
}
