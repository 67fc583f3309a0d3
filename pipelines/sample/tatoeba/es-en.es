Los barcos vuelven a casa antes de la lluvia.
Voy a plantar zanahorias junto al muro.
Pintó el viejo barco de azul y blanco.
¿Dónde puedo esperar el transbordador?
El niño preguntó por qué el mar es salado.
En la habitación solo se oía el reloj.
No olvides tu paraguas.
La luna brillaba y podíamos ver el camino.
Nuestro gato duerme debajo de la mesa de la cocina.
Perdí mi llave entre la estación y el banco.
El tren llegó tarde otra vez el lunes.
Nadie sabe quién tocó la campana anoche.
La escuela está cerrada los domingos.
Mañana el viento vendrá del oeste.
Hay un agujero en mi zapato izquierdo.
La cabra se ha comido mi periódico.
¿Cuánto cuestan estos limones?
La maestra toca el piano por la tarde.
Los pescadores cantan cuando las redes están llenas.
La orquesta necesita un segundo tambor.
El abuelo remienda redes con una aguja de madera.
Las rosas del jardín ya están rojas.
Este autobús no para en el hospital.
El faro ayuda a los marineros por la noche.
¿Oyes las ranas en el estanque?
El primer barco de la primavera trae naranjas.
Dos perros corrieron por la playa.
Mi hermano cumple hoy diez años.
Contamos diecisiete gaviotas en el tejado.
Tienes que girar a la derecha detrás de la panadería.
Por favor, escriba su nombre en la carta.
Compró pan, mantequilla y aceitunas negras.
En enero nevó durante tres días.
Mi hermana vende huevos en el mercado.
Tomamos té y hablamos de la tormenta.
El puente viejo es más largo que el nuevo.
El cartero trae un paquete cada miércoles.
La sopa está demasiado caliente para los niños.
Su tío vive en una isla pequeña.
Lávate las manos antes de comer.
