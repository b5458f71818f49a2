import { render } from "preact";
import { App } from "./app";
import "./style/tokens.css";
import "./style/frame.css";
import "./style/parts.css";
import { dropToken } from "./router";
import { look } from "./session";
import { language, speak } from "./words";

dropToken();
speak(language.value);
void look();
const place = document.getElementById("app");
if (place) render(<App />, place);
