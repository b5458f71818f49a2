// Who looks, and what he may do. The rule: the service decides; what is not allowed is not shown.
import { body, client, Problem, type Session } from "./api";
import { Store } from "./store";

export type Standing =
  | { readonly kind: "asking" }
  | { readonly kind: "in"; readonly session: Session }
  | { readonly kind: "out"; readonly problem: Problem };

export const standing = new Store<Standing>({ kind: "asking" });

/** Ask who we are; a store in trouble does not sign anybody out. */
export async function look(): Promise<void> {
  try {
    standing.set({ kind: "in", session: await body(client.GET("/v1/session")) });
  } catch (error) {
    const problem = error as Problem;
    if (standing.value.kind === "in" && problem.status !== 401) return;
    standing.set({ kind: "out", problem });
  }
}

/** Begin a session with a token. Throws a Problem. */
export async function signIn(token: string): Promise<void> {
  // A header takes no other letters, and no token has any.
  if (!/^[\x21-\x7e]+$/.test(token)) throw new Problem(401, "INVALID_TOKEN", "");
  const headers = { Authorization: `Bearer ${token}` };
  standing.set({ kind: "in", session: await body(client.POST("/v1/session", { headers })) });
}

export async function signOut(): Promise<void> {
  await body(client.DELETE("/v1/session"));
  standing.set({ kind: "out", problem: new Problem(401, "SIGNED_OUT", "") });
}

/** Whether buttons that change something are shown. */
export function useMayAct(): boolean {
  const now = standing.use();
  return now.kind === "in" && now.session.role === "operator";
}
