// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/openshift/hypershift/ignition-server/token"
)

// FuzzBearer sends any text in the header that contains the token. The server serves only known tokens and does not
// fail.
func FuzzBearer(f *testing.F) {
	for _, header := range []string{
		bearer(knownToken), bearer("machine:workers-a:00"), bearer(""), "Bearer ", "Bearer  " + base64.StdEncoding.EncodeToString([]byte(knownToken)),
		"bearer " + knownToken, "Basic " + knownToken, "Bearer ***", "Bearer \x00", "",
	} {
		f.Add(header)
	}
	handler := newServer(fakeTokens{knownToken: token.Entry{Payload: []byte("{}")}}, &fakeObserver{}, programs, slog.New(slog.DiscardHandler))
	f.Fuzz(func(t *testing.T, header string) {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/ignition", nil)
		request.Header["Authorization"] = []string{header}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		read, ok := bearerToken(header)
		want := http.StatusUnauthorized
		switch {
		case ok && read == knownToken:
			want = http.StatusOK
		case ok:
			want = http.StatusNetworkAuthenticationRequired
		}
		if answer.Code != want {
			t.Errorf("the header %q, which is read as %q, is answered with %d instead of %d", header, read, answer.Code, want)
		}
		if ok && read == "" {
			t.Errorf("the header %q is read as an empty token, which a Secret without one would have", header)
		}
	})
}
